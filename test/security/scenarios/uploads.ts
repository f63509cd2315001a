import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { rssMiB } from '../../../scripts/bench/proc.ts'
import { allOf, type Guarantee, none, noneOf, slowest } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import type { Random } from '../../harness/seed.ts'
import { until } from '../../support/until.ts'
import { prepare } from '../api.ts'
import { Processes, type Server } from '../processes.ts'
import { filesBelow, mountSmallDisk } from '../uploads/disk.ts'
import { Sink } from '../uploads/sink.ts'
import { type UploadSpec, upload } from '../uploads/uploader.ts'

const MIB = 1024 * 1024
const MAX_FILE_BYTES = 320 * MIB
const PARALLEL = 8
const GROWTH_MIB = 64
const GONE_WITHIN_MS = 1_000
const LOOK_EVERY_MS = 20
const NINE_WITHIN_MS = 10_000

type Size = { fileBytes: number; leavers: number; slowSecs: number }

const SHORT: Size = { fileBytes: 16 * MIB, leavers: 12, slowSecs: 0 }
/** 75 s is longer than the time that a whole request of another kind may take. */
const FULL: Size = { fileBytes: MAX_FILE_BYTES, leavers: 200, slowSecs: 75 }

/** Uploads to the transcription proxy: large ones at the same time, broken ones, too large ones, a full disk and a crash. */
export const uploads: Scenario = {
  id: 'P17',
  promise: 'uploads of 320 MB take no memory and leave nothing on the disk, whatever happens to them',
  run,
}

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using sink = await Sink.start()
  await using processes = new Processes({ MASTER_KEY: randomBytes(32).toString('base64') })
  const scene: Scene = {
    sink,
    processes,
    server: await startServer(processes, sink, { UPLOADS_PER_GATEWAY: String(PARALLEL) }),
    size,
    random,
    say,
  }
  return [
    ...(await uploadInParallel(scene)),
    ...(await leaveInTheMiddle(scene)),
    ...(await uploadTooMuch(scene)),
    ...(await uploadSlowly(scene)),
    ...(await fillTheDisk(scene)),
    ...(await stopAndCrash(scene)),
  ]
}

type Scene = { sink: Sink; processes: Processes; server: Server; size: Size; random: Random; say(line: string): void }

async function startServer(processes: Processes, sink: Sink, env: Record<string, string> = {}): Promise<Server> {
  const server = await processes.start('standalone', env)
  await prepare(server.url, {
    method: 'PUT',
    path: '/config/instances/whisper',
    body: { type: 'openai-compatible', url: sink.url },
  })
  return server
}

const to = ({ server }: Pick<Scene, 'server'>, spec: Omit<UploadSpec, 'url' | 'instance'>) =>
  upload({ url: server.url, instance: 'whisper', ...spec })

const spoolOf = ({ processes }: Pick<Scene, 'processes'>) => join(processes.dataDir, 'spool')

async function uploadInParallel(scene: Scene): Promise<Guarantee[]> {
  const { server, sink, size, say } = scene
  const all = (bytes: number) => Promise.all(Array.from({ length: PARALLEL }, () => to(scene, { bytes })))
  await all(4 * MIB) // Loads the code, and fills the pools of buffers.
  const before = rssMiB(server.pid)
  sink.sizes.length = 0
  let peak = before
  const sampling = setInterval(() => {
    peak = Math.max(peak, rssMiB(server.pid))
  }, LOOK_EVERY_MS)
  const from = performance.now()
  const done = await all(size.fileBytes)
  clearInterval(sampling)
  const answered = performance.now()
  await emptied(scene).catch(() => {})
  const gone = performance.now() - answered
  const secs = (answered - from) / 1000
  const total = (PARALLEL * size.fileBytes) / MIB
  say(`${total.toFixed(0)} MiB in ${secs.toFixed(1)} s, ${(total / secs).toFixed(0)} MiB/s`)
  const whole = sink.sizes.filter((bytes) => bytes > size.fileBytes && bytes < size.fileBytes + 2_000)
  return [
    allOf('parallel uploads answered 200', done.filter(({ status }) => status === 200).length, PARALLEL),
    allOf('of them whole at the backend', whole.length, PARALLEL),
    {
      title: 'memory of the gateway meanwhile',
      value: peak - before,
      unit: ' MiB',
      goal: { atMost: GROWTH_MIB },
      detail: `${before.toFixed(0)} to ${peak.toFixed(0)} MiB with ${PARALLEL} x ${size.fileBytes / MIB} MiB`,
    },
    noneOf('files left after them', await filesBelow(spoolOf(scene))),
    slowest('time until their files are gone', [gone], GONE_WITHIN_MS),
  ]
}

/** Clients leave after a random number of bytes; some after the last one, while the backend works. */
async function leaveInTheMiddle(scene: Scene): Promise<Guarantee[]> {
  const { random, size, sink } = scene
  const from = random.fork('leavers')
  const bytes = 2 * MIB
  const waits: number[] = []
  const held = Promise.withResolvers<void>()
  sink.gate = held.promise
  for (let left = size.leavers; left > 0; left -= 4) {
    const left4 = await Promise.all(
      Array.from({ length: 4 }, () => {
        const leavesAt = from.chance(0.25) ? 2 * bytes : from.between(1, bytes)
        return to(scene, { bytes, leavesAt })
      }),
    )
    const last = Math.max(...left4.map(({ leftAt = 0 }) => leftAt))
    await emptied(scene).catch(() => waits.push(Number.POSITIVE_INFINITY))
    waits.push(performance.now() - last)
  }
  held.resolve()
  sink.gate = undefined
  return [slowest('time until the files of clients that left are gone', waits, GONE_WITHIN_MS)]
}

async function uploadTooMuch(scene: Scene): Promise<Guarantee[]> {
  const declared = await to(scene, { bytes: 330 * MIB })
  const endless = await to(scene, { bytes: MAX_FILE_BYTES + MIB, isChunked: true })
  const byOne = scene.size === FULL ? [await to(scene, { bytes: MAX_FILE_BYTES + 1 })] : []
  const refused = [declared, endless, ...byOne]
  const wrong = refused.filter(({ status }) => status !== 413).map(({ status, text }) => `${status} ${text}`)
  await emptied(scene)
  const busy = await uploadNine(scene)
  await emptied(scene)
  return [noneOf('uploads of more than 320 MiB not answered 413', wrong), ...busy]
}

async function emptied(scene: Pick<Scene, 'processes'>): Promise<void> {
  let left: string[] = []
  const isEmpty = async () => {
    left = await filesBelow(spoolOf(scene))
    return left.length === 0
  }
  await until(isEmpty, { what: 'the folder of uploads to be empty', lastSeen: () => left })
}

/** Eight uploads wait for more bytes, so the ninth waits for one of them to end. */
async function uploadNine(scene: Scene): Promise<Guarantee[]> {
  let ended = 0
  const slow = async (): Promise<number> => {
    const { status } = await to(scene, { bytes: 2 * MIB, pauseMs: 50 })
    ended++
    return status
  }
  const eight = Array.from({ length: PARALLEL }, slow)
  const isFull = async () => (await filesBelow(spoolOf(scene))).length === PARALLEL
  await until(isFull, { what: `${PARALLEL} uploads at a time`, withinMs: NINE_WITHIN_MS })
  const { status } = await to(scene, { bytes: 1_000 })
  const endedBefore = ended
  const statuses = await Promise.all(eight)
  return [
    allOf('ninth upload at a time answered 200, after one of the eight', Number(status === 200 && endedBefore > 0), 1),
    allOf('the eight others answered 200', statuses.filter((each) => each === 200).length, PARALLEL),
  ]
}

/** A client with a slow line: allowed as long as it sends at least 10 KB a second. */
async function uploadSlowly(scene: Scene): Promise<Guarantee[]> {
  const { slowSecs } = scene.size
  if (slowSecs === 0) return []
  const chunkBytes = 16 * 1024
  const { status, text } = await to(scene, { bytes: slowSecs * 2 * chunkBytes, chunkBytes, pauseMs: 500 })
  return [
    noneOf(`uploads of ${slowSecs} s at 32 KB a second not answered 200`, status === 200 ? [] : [`${status} ${text}`]),
  ]
}

async function fillTheDisk({ sink, say }: Scene): Promise<Guarantee[]> {
  await using processes = new Processes({ MASTER_KEY: randomBytes(32).toString('base64') })
  await using disk = await mountSmallDisk(spoolOf({ processes }), 8)
  if (!disk) {
    say('the full disk is left out: a file system cannot be mounted here')
    return []
  }
  const server = await startServer(processes, sink)
  const full = await Promise.all(Array.from({ length: 3 }, () => to({ server }, { bytes: 16 * MIB })))
  const wrong = full.filter(({ status }) => status !== 503).map(({ status, text }) => `${status} ${text}`)
  const spool = spoolOf({ processes })
  await until(async () => (await filesBelow(spool)).length === 0, { what: 'a full disk to be empty again' }).catch(
    () => {},
  )
  const left = await filesBelow(spool)
  const { status } = await to({ server }, { bytes: MIB })
  await server.stop()
  return [
    noneOf('uploads to a full disk not answered 503', wrong),
    noneOf('files left on the full disk', left),
    allOf('upload afterwards answered 200', Number(status === 200), 1),
  ]
}

/** Ends the process in the middle of an upload, by SIGTERM and by SIGKILL, and starts it again in the same folder. */
async function stopAndCrash(scene: Scene): Promise<Guarantee[]> {
  const { processes, sink } = scene
  const spool = spoolOf(scene)
  const begin = (server: Server) => to({ server }, { bytes: 50 * MIB, pauseMs: 20 })
  const begun = () => until(async () => (await filesBelow(spool)).length === 1, { what: 'an upload to be on the disk' })
  const cutByStop = begin(scene.server)
  await begun()
  const stopCode = await scene.server.stop()
  await cutByStop
  const afterStop = await readdir(spool)
  const crashing = await startServer(processes, sink)
  const cutByCrash = begin(crashing)
  await begun()
  await crashing.kill()
  await cutByCrash
  const leftByCrash = (await filesBelow(spool)).length
  const next = await startServer(processes, sink)
  const swept = await readdir(spool)
  const { status } = await to({ server: next }, { bytes: MIB })
  await next.stop()
  return [
    allOf('exit code 0 of a process that ended during an upload', Number(stopCode === 0), 1),
    noneOf('folders left by a process that ended', afterStop),
    allOf('file left by a process that was killed', leftByCrash, 1),
    none('files left after the next start', (await filesBelow(spool)).length),
    none('folders of others after the next start', swept.length - 1),
    allOf('upload afterwards answered 200', Number(status === 200), 1),
  ]
}

// Measures what files cost: a conversation over a PDF of 10 MB at each wire, and 200 uploads of 20 MB through two gateways.

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { MongoClient } from 'mongodb'
import { Upload } from 'tus-js-client'
import { rssMiB } from '../../scripts/bench/proc.ts'
import { startMongoSet } from '../../scripts/local-services/mongo.ts'
import { openClusterStore } from '../../services/wiring/open-store.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import { groupSettings } from '../../shared/platform/config/groups.ts'
import { Child } from '../support/child.ts'
import { startCluster } from '../support/cluster.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const USAGE = `npm run bench:files -- [--part turns|uploads] [--turns 20] [--uploads 200] [--megabytes 20]
Measures, with real processes: the bytes that each turn of a conversation over a PDF of 10 MB sends to its provider, and the memory of the process, at each
wire; the memory of two gateways that take uploads, and what is left of them behind their time; an upload in parts whose gateway is killed.
Resident memory is in MiB. It exits with 1 when the memory grows, or when something is left.
`
const MIB = 1024 * 1024
/** What the memory of a process may grow from the first half of the work to the second one, in MiB: garbage of a few requests. */
const MAX_GROWTH = 96
const SHORT_SECS = 60

const { values: options } = parseArgs({
  options: {
    part: { type: 'string' },
    turns: { type: 'string', default: '20' },
    uploads: { type: 'string', default: '200' },
    megabytes: { type: 'string', default: '20' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const problems: string[] = []
if (options.part !== 'uploads') await measureTurns(Number(options.turns))
if (options.part !== 'turns') await measureUploads(Number(options.uploads), Number(options.megabytes) * MIB)
for (const problem of problems) say(`NOT KEPT: ${problem}`)
process.exit(problems.length === 0 ? 0 : 1)

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Says the samples of a process, and whether the second half of them is above the first. */
function judge(name: string, samples: readonly number[]): void {
  const half = Math.ceil(samples.length / 2)
  const [first, second] = [samples.slice(0, half), samples.slice(half)].map((part) => Math.max(...part))
  say(`${name}: RSS ${samples.map((mib) => mib.toFixed(0)).join(' ')} MiB`)
  if ((second ?? 0) - (first ?? 0) > MAX_GROWTH)
    problems.push(`the memory of ${name} grows from ${first} to ${second} MiB`)
}

async function measureTurns(turns: number): Promise<void> {
  const wires = (server: ModelServer): Record<string, Record<string, string>> => ({
    chat: { MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: server.url },
    responses: { MODEL_PROVIDER: 'openai', MODEL_BASE_URL: server.url, MODEL_API_KEY: 'sk-test' },
    anthropic: { MODEL_PROVIDER: 'anthropic', MODEL_BASE_URL: server.url, MODEL_API_KEY: 'sk-test' },
    google: { MODEL_PROVIDER: 'google', MODEL_BASE_URL: server.googleUrl, MODEL_API_KEY: 'sk-test' },
  })
  const server = await startModelServer({ record: false })
  const sent: number[] = []
  server.otherwise(({ body }) => {
    sent.push(JSON.stringify(body).length)
    return 'ok'
  })
  for (const [wire, env] of Object.entries(wires(server))) await converse(wire, { env, turns, sent })
  await server.close()
}

type Conversation = { env: Record<string, string>; turns: number; sent: number[] }

async function converse(wire: string, { env, turns, sent }: Conversation): Promise<void> {
  await using folder = await makeTempFolder()
  const main = new URL('../../services/standalone/main.ts', import.meta.url).pathname
  const settings = { DATA_DIR: join(folder.path, 'data'), PORT: '0', OPS_PORT: '0', MODEL: 'test-model', ...env }
  const child = new Child(process.execPath, [main], settings)
  const { url } = JSON.parse(await child.line(/"listening"/)) as { url: string }
  const pdf = Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(10 * MIB)])
  const added = await fetch(`${url}/files?name=plan.pdf`, { method: 'POST', body: pdf })
  const { file_id } = (await added.json()) as { file_id: string }
  const post = (path: string, body: object) =>
    fetch(url + path, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  await post('/sessions', { session_id: 'pdf' })
  const samples: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    const attachments = turn === 0 ? { attachments: [{ file_id }] } : {}
    const answer = await post('/sessions/pdf/messages', { prompt: `Question ${turn}`, ...attachments })
    if (answer.status !== 200) problems.push(`${wire}, turn ${turn}: ${answer.status} ${await answer.text()}`)
    await answer.arrayBuffer().catch(() => {})
    samples.push(rssMiB(child.process.pid ?? 0))
  }
  say(`${wire}: bytes of each turn ${sent.splice(0).join(' ')}`)
  judge(`the process over ${wire}`, samples)
  await child.end('SIGKILL')
}

async function measureUploads(count: number, bytes: number): Promise<void> {
  const mongo = await startMongoSet()
  const env = { MONGODB_URL: mongo.url, MONGODB_DB: 'files', RATE_LIMIT_RPM: '0' }
  const cluster = await startCluster(env, { gateway: 2, executor: 1 })
  try {
    const pids = cluster.gateways.map(({ pid }) => pid)
    const samples: number[][] = pids.map(() => [])
    const started = performance.now()
    let next = 0
    const sendSome = async () => {
      for (let number = next++; number < count; number = next++) {
        const url = cluster.urls[number % 2] ?? ''
        const answer = await fetch(`${url}/files?name=${number}.bin&expires_in_secs=${SHORT_SECS}`, {
          method: 'POST',
          body: Buffer.concat([randomBytes(MIB), Buffer.alloc(bytes - MIB, number)]),
        })
        if (answer.status !== 201) problems.push(`upload ${number}: ${answer.status} ${await answer.text()}`)
        await answer.arrayBuffer().catch(() => {})
        if (number % Math.ceil(count / 20) === 0) for (const [i, pid] of pids.entries()) samples[i]?.push(rssMiB(pid))
      }
    }
    await Promise.all([sendSome(), sendSome(), sendSome(), sendSome()])
    say(`${count} uploads of ${bytes} bytes took ${((performance.now() - started) / 1_000).toFixed(0)} s`)
    for (const [i, each] of samples.entries()) judge(`gateway ${i + 1}`, each)
    await resumeBehindKill(cluster)
    await sleep(SHORT_SECS * 1_000)
    await sweep(env)
    await assertEmpty(env)
  } finally {
    await cluster.close()
    await mongo.stop()
  }
}

/** An upload goes on at the second gateway when the first one is killed in the middle of a request. */
async function resumeBehindKill({ urls, gateways }: Awaited<ReturnType<typeof startCluster>>): Promise<void> {
  const [first = '', second = ''] = urls
  const bytes = randomBytes(20 * MIB)
  const query = `?expires_in_secs=${SHORT_SECS}`
  const address = await new Promise<string>((resolve) => {
    const upload = new Upload(bytes, {
      ...{ endpoint: `${first}/files${query}`, retryDelays: null, chunkSize: 8 * MIB },
      onError: () => resolve(upload.url ?? ''),
      onProgress: (sent) => void (sent > 12 * MIB && gateways[0]?.kill('SIGKILL')),
    })
    upload.start()
  })
  const uploadUrl = `${second}/files/${address.split('/').at(-1)}`
  const head = await fetch(uploadUrl, { method: 'HEAD', headers: { 'Tus-Resumable': '1.0.0' } })
  say(`the upload goes on at ${head.headers.get('upload-offset')} of ${bytes.length} bytes`)
  await new Promise<void>((resolve, reject) => {
    new Upload(bytes, { endpoint: `${second}/files`, uploadUrl, onSuccess: () => resolve(), onError: reject }).start()
  })
  const content = Buffer.from(await (await fetch(`${uploadUrl}/content`)).arrayBuffer())
  if (!content.equals(bytes)) problems.push('the upload that went on has other bytes')
}

/** What an executor does every ten minutes. */
async function sweep(env: Record<string, string>): Promise<void> {
  const settings = groupSettings(loadConfig({ ...env, REDIS_URL: 'redis://127.0.0.1:1' }, 'cluster'))
  const store = await openClusterStore(settings.store, SILENT_LOG)
  const started = performance.now()
  await store?.files.sweep()
  say(`the sweep took ${((performance.now() - started) / 1_000).toFixed(1)} s`)
  await store?.close()
}

async function assertEmpty({ MONGODB_URL = '', MONGODB_DB }: Record<string, string>): Promise<void> {
  const client = await MongoClient.connect(MONGODB_URL)
  const names = ['files', 'file_contents', 'objects.files', 'objects.chunks']
  const counts = await Promise.all(names.map((name) => client.db(MONGODB_DB).collection(name).countDocuments()))
  say(`left: ${names.map((name, i) => `${name} ${counts[i]}`).join(', ')}`)
  if (counts.some((left) => left > 0)) problems.push('something is left behind its time')
  await client.close()
}

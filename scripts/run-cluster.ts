import { holdDataDir } from '../services/wiring/data-dir.ts'
import { usesPrograms } from '../services/wiring/process.ts'
import { type Env, hideSettings, readSettings } from '../services/wiring/secrets/hidden-environment.ts'
import { redisOf } from '../shared/platform/config/redis-place.ts'
import { createClusterFile } from './local-cluster/cluster-file.ts'
import { leaveCluster } from './local-cluster/leave.ts'
import { type Member, memberProgram } from './local-cluster/member.ts'
import { createMemberLogs } from './local-cluster/member-log.ts'
import { readConfig, readOptions, refusing } from './local-cluster/options.ts'
import { checkPorts } from './local-cluster/ports.ts'
import { type Counts, slotsOf } from './local-cluster/slots.ts'
import { type StartFailure, Supervisor, toFailure } from './local-cluster/supervisor.ts'
import { openMongo } from './local-services/mongo.ts'
import { openRedis } from './local-services/redis.ts'

// Runs gateways, workers and executors as separate processes (D1.1). Started by scripts/cluster.

/** Time for each process to close its connections, beyond DRAIN_SECS. */
const STOP_MS = 15_000

const say = (line: string) => console.log(line)

await run(process.argv.slice(2)).catch((cause: unknown) => {
  const { message, exitCode } = toFailure(cause)
  console.error(message)
  process.exit(exitCode)
})

async function run(args: string[]): Promise<void> {
  const { restarts, ...counts } = readOptions(args)
  const env = environment(refusing(() => readSettings(process.env)))
  const config = readConfig(env)
  if (usesPrograms(config)) hideSettings(process, process.env, env)
  const { dataDir, drainMs, host, redisSentinels: sentinels, redisCluster } = config
  const held = refusing(() => holdDataDir(dataDir, 'scripts/cluster'))
  await checkPorts(counts, config, host)
  const redis = await openRedis({ url: env['REDIS_URL'], sentinels, cluster: redisCluster }, say)
  const mongo = await openMongo(env['MONGODB_URL'], say)
  const file = createClusterFile(dataDir, { redis_url: redis.url, mongodb_url: mongo.url })
  const ending = Promise.withResolvers<StartFailure | undefined>()
  onSignals(() => ending.resolve(undefined))

  let isComplete = false
  const onChange = async (members: readonly Member[]) => {
    if (isComplete)
      await file.write(members).catch((cause: unknown) => say(`${file.path} is out of date: ${String(cause)}`))
  }
  // Without Redis the lease of the process runs out by itself.
  const onEnded = (member: Member) => leaveCluster(redisOf({ ...config, redisUrl: redis.url }), member).catch(() => {})
  const supervisor = new Supervisor<Member>({ say, restarts, onChange, onEnded, onRefused: ending.resolve })
  const slots = await slotsOf(counts, config)
  const urls = { ...(redis.server && { REDIS_URL: redis.url }), MONGODB_URL: mongo.url }
  const shared = { ...env, DATA_DIR: dataDir, ...urls }
  const logs = createMemberLogs({ dataDir, say })
  const start = async () => {
    for (const line of planned(counts, logs)) say(line)
    await supervisor.start(slots.map((slot) => memberProgram(slot, shared, logs.open(slot.name))))
    isComplete = true
    await file.write(supervisor.members)
    for (const member of supervisor.members) say(describe(member))
    const url = `http://127.0.0.1:${slots[0]?.port}/api/v1`
    held.announce(url)
    say(`The cluster is ready: ${url} (its processes: ${file.path}).`)
  }
  start().catch((cause: unknown) => ending.resolve(toFailure(cause)))

  const failure = await ending.promise
  if (failure) console.error(failure.message)
  say(`Stopping: running work has ${drainMs / 1000} s to end (DRAIN_SECS).`)
  await supervisor.stop(drainMs + STOP_MS)
  await Promise.all([redis.server?.stop(), mongo.set?.stop()])
  await file.remove()
  held.release()
  process.exit(failure?.exitCode ?? 0)
}

/** The environment without empty variables, on this machine only unless HOST says otherwise, and with a model. */
function environment(settings: Env): Record<string, string> {
  const set = Object.entries(settings).flatMap(([name, value]) => (value ? [[name, value] as const] : []))
  const env: Record<string, string> = { HOST: '127.0.0.1', ...Object.fromEntries(set) }
  if (env['MODEL'] || env['MODEL_PROVIDER']) return env
  say('No model is configured: MODEL_PROVIDER=demo.')
  return { ...env, MODEL_PROVIDER: 'demo' }
}

/** The first signal calls `end`. The second exits immediately, which ends the processes too: they end with this one. */
function onSignals(end: () => void): void {
  let isEnding = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isEnding) process.exit(1)
      isEnding = true
      end()
    })
  }
}

function planned({ gateways, workers, executors }: Counts, logs: { dir: string }): string[] {
  const counted = (count: number, name: string) => `${count} ${name}${count === 1 ? '' : 's'}`
  const processes = [counted(gateways, 'gateway'), counted(workers, 'worker'), counted(executors, 'executor')]
  return [
    ...(executors === 0 ? ['There is no executor: plans wait for one, and flows are answered 503.'] : []),
    `Starting ${processes.join(', ')}; their logs: ${logs.dir}`,
  ]
}

function describe({ role, id, pid, port, ops_port }: Member): string {
  return `${role} ${id}: pid ${pid}${port === null ? '' : `, port ${port}`}, ops port ${ops_port}`
}

import { loadavg } from 'node:os'
import { MongoClient } from 'mongodb'
import { memberProgram } from '../../local-cluster/member.ts'
import { slotsOf } from '../../local-cluster/slots.ts'
import { type MongoSet, startMongoSet } from '../../local-services/mongo.ts'
import { startRedis } from '../../local-services/redis.ts'
import { cpuMs } from '../proc.ts'

const USAGE = `npm run bench:durability -- [--quick]
  --quick  fewer messages
Measures what DURABILITY=sessions and =runs cost a message of a session beside DURABILITY=off: CPU of worker and gateway, writes of MongoDB, and the
time to the end of a message's stream. The three take turns, each in a cluster of its own.
`
const MODES = ['off', 'sessions', 'runs'] as const
type Mode = (typeof MODES)[number]
type Sample = { workerMs: number; gatewayMs: number; writes: number; latencyMs: number }

if (process.argv.includes('--help')) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const isQuick = process.argv.includes('--quick')
const ROUNDS = isQuick ? 2 : 5
/** How many sessions are answered at a time, and how many messages each gets. */
const LOADS = [
  { name: 'one at a time', sessions: 1, messages: isQuick ? 100 : 300, prompt: '/say hello' },
  { name: '32 at a time', sessions: 32, messages: isQuick ? 20 : 60, prompt: '/say hello' },
  {
    name: '8 at a time, 1,000 events each',
    sessions: 8,
    messages: isQuick ? 6 : 20,
    prompt: `/say ${'word '.repeat(1_000)}`,
  },
]
const FREE_PORTS = { port: 0, opsPort: 0 }
const STOP_WITHIN_MS = 3_000

await using stack = new AsyncDisposableStack()
const mongo = stack.use(await startMongoSet())
const clusters = {
  off: await startCluster('off', mongo),
  sessions: await startCluster('sessions', mongo),
  runs: await startCluster('runs', mongo),
}
process.stdout.write(`load average ${loadavg()[0]?.toFixed(1)}\n`)
for (const load of LOADS) {
  const samples: Record<Mode, Sample[]> = { off: [], sessions: [], runs: [] }
  for (const mode of MODES) await measure(clusters[mode], load) // A round that warms up.
  for (let round = 0; round < ROUNDS; round++)
    for (const mode of MODES) samples[mode].push(await measure(clusters[mode], load))
  process.stdout.write(report(load.name, samples))
}

type Started = Awaited<ReturnType<typeof startCluster>>

/** One gateway and one worker with the demo model. */
async function startCluster(mode: Mode, { url }: MongoSet) {
  const redis = stack.use(await startRedis())
  const common = {
    HOST: '127.0.0.1',
    REDIS_URL: redis.url,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    MODEL_PROVIDER: 'demo',
  }
  const env = { ...common, MONGODB_URL: url, MONGODB_DB: `bench_${mode}`, DURABILITY: mode, RUN_RESUME_SECS: '1' }
  const pids = { gateway: 0, worker: 0, executor: 0 }
  const slots = await slotsOf({ gateways: 1, workers: 1, executors: 0 }, FREE_PORTS)
  // The gateway last: it waits for the worker.
  for (const slot of slots.toReversed()) {
    const program = memberProgram(slot, env)
    const child = await program.spawn()
    stack.defer(async () => void (await child.stop(STOP_WITHIN_MS)))
    await program.ready(child)
    pids[slot.role] = child.pid
  }
  const port = slots.find(({ role }) => role === 'gateway')?.port ?? 0
  const client = await new MongoClient(url).connect()
  stack.defer(() => client.close())
  return { base: `http://127.0.0.1:${port}/api/v1`, pids, client }
}

async function measure(
  { base, pids, client }: Started,
  { sessions, messages, prompt }: (typeof LOADS)[number],
): Promise<Sample> {
  const ids = await Promise.all(Array.from({ length: sessions }, () => createSession(base)))
  const before = { worker: cpuMs(pids.worker), gateway: cpuMs(pids.gateway), writes: await writesOf(client) }
  const latencies = await Promise.all(ids.map((id) => converse({ base, id, prompt }, messages)))
  const count = sessions * messages
  return {
    workerMs: (cpuMs(pids.worker) - before.worker) / count,
    gatewayMs: (cpuMs(pids.gateway) - before.gateway) / count,
    writes: ((await writesOf(client)) - before.writes) / count,
    latencyMs: latencies.reduce((sum, each) => sum + each, 0) / latencies.length,
  }
}

async function createSession(base: string): Promise<string> {
  const response = await fetch(`${base}/sessions`, { method: 'POST' })
  return ((await response.json()) as { session_id: string }).session_id
}

/** Sends messages one after the other. Resolves with the mean time that one took. */
async function converse(
  { base, id, prompt }: { base: string; id: string; prompt: string },
  messages: number,
): Promise<number> {
  const begunAt = performance.now()
  for (let i = 0; i < messages; i++) {
    const body = JSON.stringify({ prompt })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${base}/sessions/${id}/messages`, { method: 'POST', headers, body })
    const text = await response.text()
    if (!text.includes('event: done')) throw new Error(`a message was not answered: ${text.slice(-500)}`)
  }
  return (performance.now() - begunAt) / messages
}

/** Commands that insert or change documents, of all databases. */
async function writesOf(client: MongoClient): Promise<number> {
  const { metrics } = await client.db('admin').command({ serverStatus: 1 })
  const {
    insert,
    update,
    delete: removal,
  } = (metrics as { commands: Record<string, { total: bigint | number }> }).commands
  return [insert, update, removal].reduce((sum, each) => sum + Number(each?.total ?? 0), 0)
}

function report(name: string, samples: Record<Mode, Sample[]>): string {
  const of = (mode: Mode, field: keyof Sample) => median(samples[mode].map((sample) => sample[field]))
  const row = (label: string, field: keyof Sample, unit: string) => {
    const off = of('off', field)
    const shown = MODES.map((mode) => {
      const value = of(mode, field)
      const more = mode !== 'off' && off > 0 ? ` (${(100 * (value / off - 1)).toFixed(1)} %)` : ''
      return `${mode} ${value.toFixed(3)}${more}`
    })
    return `  ${label}: ${shown.join(', ')} ${unit}\n`
  }
  return [
    `${name}\n`,
    row('worker', 'workerMs', 'ms of CPU a message'),
    row('gateway', 'gatewayMs', 'ms of CPU a message'),
    row('MongoDB', 'writes', 'write commands a message'),
    row('a message', 'latencyMs', 'ms to the end of its stream'),
  ].join('')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

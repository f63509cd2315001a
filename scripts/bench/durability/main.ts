import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { MongoClient } from 'mongodb'
import { answerDirectives } from '../../../test/support/model-server/directives.ts'
import { startModelServer } from '../../../test/support/model-server/model-server.ts'
import { memberProgram } from '../../local-cluster/member.ts'
import { slotsOf } from '../../local-cluster/slots.ts'
import { type MongoSet, startMongoSet } from '../../local-services/mongo.ts'
import { startRedis } from '../../local-services/redis.ts'
import { threadsCpuMs } from '../proc.ts'

const USAGE = `npm run bench:durability -- [--quick] [--load N]...
  --quick   fewer rounds
  --load N  only this one of the loads: 0 (short runs, 64 at a time: 20 tokens from a provider over HTTP), 1 (100 streams of 50 tokens, one each 20 ms);
            with the built-in model, which costs next to nothing: 2 (one session), 3 (32 sessions), 4 (8 sessions, 1,000 events a message);
            5 (short one-shot runs, 64 at a time, as 0)
Measures what DURABILITY=sessions and =runs cost a message of a session beside DURABILITY=off: CPU of worker and gateway, commands of MongoDB and
Redis, and the time to the end of a message's stream. The three take turns in short rounds, in both orders, each in a cluster of its own. A percentage is
the median of the rounds' ratios to \`off\`, because the load of a machine changes from round to round.
`
const MODES = ['off', 'sessions', 'runs'] as const
type Mode = (typeof MODES)[number]
type Sample = {
  bothMs: number
  workerMs: number
  gatewayMs: number
  writes: number
  commands: number
  latencyMs: number
}

const { values: options } = parseArgs({
  options: { help: { type: 'boolean' }, quick: { type: 'boolean' }, load: { type: 'string', multiple: true } },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const ROUNDS = options.quick ? 5 : 30
/** Enough for most of the code to be compiled. */
const WARM_UPS = options.quick ? 4 : 10
/** How many sessions are answered at a time, and how many messages each gets in a round. `overHttp`: a provider answers, not the built-in model. */
type Load = {
  name: string
  sessions: number
  messages: number
  prompt: string
  overHttp?: boolean
  isOneShot?: boolean
}
const SHORT = { sessions: 64, messages: 8, prompt: '/tokens 20', overHttp: true }
const LOADS: readonly Load[] = [
  { name: 'short runs, 64 at a time', ...SHORT },
  { name: '100 streams, paced', sessions: 100, messages: 1, prompt: '/tokens 50 20', overHttp: true },
  { name: 'built-in model, one at a time', sessions: 1, messages: 60, prompt: '/say hello' },
  { name: 'built-in model, 32 at a time', sessions: 32, messages: 15, prompt: '/say hello' },
  {
    name: 'built-in model, 8 at a time, 1,000 events each',
    sessions: 8,
    messages: 24,
    prompt: `/say ${'word '.repeat(1_000)}`,
  },
  { name: 'short one-shot runs, 64 at a time', ...SHORT, isOneShot: true },
].filter((_, i) => options.load?.includes(String(i)) ?? true)
const FREE_PORTS = { port: 0, opsPort: 0 }
const STOP_WITHIN_MS = 3_000
let databases = 0
/** After a refusal of a busy process. */
const AGAIN_MS = 100

await using mongo = await startMongoSet()
process.stdout.write(`load average ${loadavg()[0]?.toFixed(1)}\n`)
for (const load of LOADS) process.stdout.write(report(load.name, await measureLoad(load)))

async function measureLoad(load: Load): Promise<Record<Mode, Sample[]>> {
  await using stack = new AsyncDisposableStack()
  const model = load.overHttp ? await startProvider(stack) : { MODEL_PROVIDER: 'demo' }
  const start = (mode: Mode) => startCluster(mode, { mongo, model, stack })
  const clusters = { off: await start('off'), sessions: await start('sessions'), runs: await start('runs') }
  const samples: Record<Mode, Sample[]> = { off: [], sessions: [], runs: [] }
  for (let round = -WARM_UPS; round < ROUNDS; round++)
    for (const mode of round % 2 === 0 ? MODES : MODES.toReversed()) {
      const sample = await measure(clusters[mode], load)
      if (round >= 0) samples[mode].push(sample)
    }
  return samples
}

/** Starts a provider that follows the directives in prompts, and returns the settings that make it the model of a process. */
async function startProvider(stack: AsyncDisposableStack): Promise<Record<string, string>> {
  const server = await startModelServer({ record: false })
  stack.defer(() => server.close())
  server.otherwise(answerDirectives)
  return { MODEL: 'bench', MODEL_PROVIDER: 'openai-compatible', MODEL_BASE_URL: server.url }
}

type Started = Awaited<ReturnType<typeof startCluster>>

type Place = { mongo: MongoSet; model: Readonly<Record<string, string>>; stack: AsyncDisposableStack }

/** One gateway and one worker. */
async function startCluster(mode: Mode, { mongo: { url }, model, stack }: Place) {
  const redis = stack.use(await startRedis())
  const common = {
    HOST: '127.0.0.1',
    REDIS_URL: redis.url,
    RATE_LIMIT_RPM: '0',
    DRAIN_SECS: '0',
    ...model,
  }
  const env = {
    ...common,
    MONGODB_URL: url,
    MONGODB_DB: `bench_${++databases}`,
    DURABILITY: mode,
    RUN_RESUME_SECS: '1',
  }
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
  const view = new Redis(redis.url)
  stack.defer(() => view.disconnect())
  return { base: `http://127.0.0.1:${port}/api/v1`, pids, client, view }
}

async function measure({ base, pids, client, view }: Started, load: Load): Promise<Sample> {
  const { sessions, messages, prompt, isOneShot = false } = load
  const pathOf = async () => (isOneShot ? '/agent/run' : `/sessions/${await createSession(base)}/messages`)
  const urls = await Promise.all(Array.from({ length: sessions }, async () => `${base}${await pathOf()}`))
  const counts = async () => ({ writes: await writesOf(client), commands: await commandsOf(view) })
  const before = { ...(await counts()), worker: threadsCpuMs(pids.worker), gateway: threadsCpuMs(pids.gateway) }
  const latencies = await Promise.all(urls.map((url) => converse({ url, prompt }, messages)))
  const cpu = { worker: threadsCpuMs(pids.worker), gateway: threadsCpuMs(pids.gateway) }
  const after = { ...(await counts()), ...cpu }
  const count = sessions * messages
  const [workerMs, gatewayMs] = [(after.worker - before.worker) / count, (after.gateway - before.gateway) / count]
  return {
    bothMs: workerMs + gatewayMs,
    workerMs,
    gatewayMs,
    writes: (after.writes - before.writes) / count,
    commands: (after.commands - before.commands) / count,
    latencyMs: latencies.reduce((sum, each) => sum + each, 0) / latencies.length,
  }
}

async function createSession(base: string): Promise<string> {
  const response = await fetch(`${base}/sessions`, { method: 'POST' })
  return ((await response.json()) as { session_id: string }).session_id
}

/** Sends messages one after the other. Resolves with the mean time that one took. */
async function converse({ url, prompt }: { url: string; prompt: string }, messages: number): Promise<number> {
  const begunAt = performance.now()
  for (let i = 0; i < messages; i++) {
    const text = await send(url, JSON.stringify({ prompt }))
    if (!text.includes('event: done')) throw new Error(`a message was not answered: ${text.slice(-500)}`)
  }
  return (performance.now() - begunAt) / messages
}

/** Sends a message until it is taken: a busy process refuses it, or closes a connection that was idle. */
async function send(url: string, body: string): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  for (;;) {
    const response = await fetch(url, { method: 'POST', headers, body }).catch(() => undefined)
    if (response && response.status !== 503) return response.text()
    await sleep(AGAIN_MS)
  }
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

/** Commands that Redis has processed. */
async function commandsOf(view: Redis): Promise<number> {
  const text = await view.info('stats')
  return Number(/^total_commands_processed:(\d+)/m.exec(text)?.[1])
}

function report(name: string, samples: Record<Mode, Sample[]>): string {
  const row = (label: string, field: keyof Sample, unit: string) => {
    const of = (mode: Mode) => samples[mode].map((sample) => sample[field])
    const shown = MODES.map((mode) => {
      const ratio = median(of(mode).map((value, round) => value / (of('off')[round] ?? Number.NaN)))
      const more = mode === 'off' ? '' : ` (${ratio >= 1 ? '+' : ''}${(100 * (ratio - 1)).toFixed(1)} %)`
      return `${mode} ${median(of(mode)).toFixed(3)}${more}`
    })
    return `  ${label}: ${shown.join(', ')} ${unit}\n`
  }
  return [
    `${name}\n`,
    row('worker and gateway', 'bothMs', 'ms of CPU a message'),
    row('worker', 'workerMs', 'ms of CPU a message'),
    row('gateway', 'gatewayMs', 'ms of CPU a message'),
    row('MongoDB', 'writes', 'write commands a message'),
    row('Redis', 'commands', 'commands a message'),
    row('a message', 'latencyMs', 'ms to the end of its stream'),
  ].join('')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

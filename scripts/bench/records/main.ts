import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startMongoSet } from '../../local-services/mongo.ts'
import { Bench } from '../bench.ts'
import { Client, type Target } from '../client.ts'
import { startRunCluster } from '../cluster.ts'
import { threadsCpuMs } from '../proc.ts'
import { Processes } from '../processes.ts'
import { median, quantile } from '../statistics.ts'

const USAGE = `npm run bench:records -- [--form standalone|cluster] [--run short|ordinary] [--at-once N]... [--rounds N] [--instructions]
  --form          the standalone form with SQLite, or the cluster with MongoDB; both by default
  --run           the shortest run, 5 tokens, or an ordinary one: 40 tokens, a call of Glob, and 40 tokens more; both by default
  --at-once N     so many runs at a time; 16 and 1 by default
  --rounds N      pairs of rounds (30)
  --instructions  also counts instructions, which other work on the machine does not change (needs perf)
Measures what the record of a run (D20) costs a run of a provider over HTTP that sends as fast as it is read. Rounds with and without it take turns in the same
processes, which a module switches that is loaded before the product. A round ends when what it has left to write is written. A percentage is the
median of the ratios of a pair.
`
const { values: options } = parseArgs({
  options: {
    help: { type: 'boolean' },
    form: { type: 'string' },
    run: { type: 'string' },
    'at-once': { type: 'string', multiple: true },
    rounds: { type: 'string' },
    instructions: { type: 'boolean' },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const ROUNDS = Number(options.rounds ?? 30)
const AT_ONCE = (options['at-once'] ?? ['16', '1']).map(Number)
const RUNS = 400
/** Until most of the code is compiled: before, a round costs up to a fifth more or less than the one beside it. */
const WARM_UPS = 16
/** Longer than a record waits for others. */
const SETTLE_MS = 250
const MIB = 1e6

type MeasuredRun = { name: string; tokens: number; tool?: string }
type Load = { run: MeasuredRun; atOnce: number }

const RUN_SHAPES: readonly MeasuredRun[] = [
  { name: 'short', tokens: 5 },
  { name: 'ordinary', tokens: 40, tool: 'Glob {"pattern":"*"}' },
]

/** One line of the result: the sum over these processes. */
type Measured = { name: string; pids: readonly number[] }
type Started = { target: Target; pids: readonly number[]; measured: readonly Measured[] }
type Sample = { cpuMs: number; instructions: number }

const SWITCH = `--import=${new URL('switch.ts', import.meta.url).href}`
const signal = new AbortController().signal
const processes = new Processes()
process.once('exit', () => processes.killAll())
const bench = new Bench({ isQuick: false, signal, processes, shared: new Map() })
process.stdout.write(`load average ${loadavg()[0]?.toFixed(1)}\n`)
for (const form of ['standalone', 'cluster']) if ((options.form ?? form) === form) await measureForm(form)
process.exit(0)

async function measureForm(form: string): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const started = form === 'cluster' ? await startCluster(stack) : await startStandalone()
  for (const run of RUN_SHAPES)
    if ((options.run ?? run.name) === run.name)
      for (const atOnce of AT_ONCE)
        await measureLoad(`${form}, ${run.name}, ${atOnce} at a time`, started, { run, atOnce })
}

async function startStandalone(): Promise<Started> {
  const running = await bench.startOurs('data-records', { NODE_OPTIONS: SWITCH })
  const pids = [running.pid]
  return { target: running, pids, measured: [{ name: 'process', pids }] }
}

async function startCluster(stack: AsyncDisposableStack): Promise<Started> {
  const mongo = stack.use(await startMongoSet())
  const target = stack.use(await startRunCluster(bench, { MONGODB_URL: mongo.url, NODE_OPTIONS: SWITCH }))
  const { gateway = [], worker = [] } = target.pidsOf
  const pids = [...gateway, ...worker]
  const measured = [
    { name: 'gateway and worker', pids },
    { name: 'worker', pids: worker },
    { name: 'gateway', pids: gateway },
    { name: 'MongoDB', pids: mongo.members.map(({ pid }) => pid) },
  ]
  return { target, pids, measured }
}

async function measureLoad(name: string, { target, pids, measured }: Started, load: Load): Promise<void> {
  using client = new Client(target, signal)
  const samples = { on: measured.map((): Sample[] => []), off: measured.map((): Sample[] => []) }
  const round = async (mode: 'on' | 'off', isKept: boolean) => {
    const sample = await measureRound(client, measured, load)
    if (isKept) for (const [i, each] of sample.entries()) samples[mode][i]?.push(each)
  }
  const flip = async () => {
    for (const pid of pids) process.kill(pid, 'SIGUSR2')
    await sleep(SETTLE_MS)
  }
  // on, off, off, on and so on: what grows with time counts for both.
  for (let pair = -WARM_UPS; pair < ROUNDS; pair++) {
    const [first, second] = pair % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)
    await round(first, pair >= 0)
    await flip()
    await round(second, pair >= 0)
  }
  if (ROUNDS % 2 !== WARM_UPS % 2) await flip()
  process.stdout.write(`${name}\n`)
  for (const [i, { name: part }] of measured.entries()) {
    const [on, off] = [samples.on[i] ?? [], samples.off[i] ?? []]
    process.stdout.write(row(part, 'ms of CPU a run', on, off, ({ cpuMs }) => cpuMs))
    if (options.instructions)
      process.stdout.write(row(part, 'million instructions', on, off, ({ instructions }) => instructions))
  }
}

async function measureRound(
  client: Client,
  measured: readonly Measured[],
  { run: { tokens, tool }, atOnce }: Load,
): Promise<Sample[]> {
  const counters = await Promise.all(measured.map(({ pids }) => countInstructions(pids)))
  const cpu = () => measured.map(({ pids }) => pids.reduce((sum, pid) => sum + threadsCpuMs(pid), 0))
  const before = cpu()
  let left = RUNS
  const work = async () => {
    while (left-- > 0) await client.stream(tokens, { tool })
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  await sleep(SETTLE_MS)
  const after = cpu()
  const counts = await Promise.all(counters.map((count) => count()))
  return measured.map((_, i) => ({
    cpuMs: ((after[i] ?? 0) - (before[i] ?? 0)) / RUNS,
    instructions: (counts[i] ?? 0) / MIB / RUNS,
  }))
}

/** Counts the instructions of these processes and their kernel until the returned function is called. */
async function countInstructions(pids: readonly number[]): Promise<() => Promise<number>> {
  if (!options.instructions) return async () => 0
  const perf = spawn('perf', ['stat', '-x', ',', '-e', 'instructions', '-p', pids.join(',')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let text = ''
  perf.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await sleep(SETTLE_MS)
  return async () => {
    perf.kill('SIGINT')
    await once(perf, 'close')
    return Number(text.split(',')[0])
  }
}

function row(name: string, unit: string, on: Sample[], off: Sample[], of: (sample: Sample) => number): string {
  const ratios = on.map((sample, i) => of(sample) / of(off[i] ?? sample) - 1)
  const percent = (part: number) => `${(100 * quantile(ratios, part)).toFixed(1)} %`
  const [with_, without] = [median(on.map(of)), median(off.map(of))]
  const shown = `${without.toFixed(3)} without, ${with_.toFixed(3)} with: ${percent(0.5)}`
  return `  ${name}, ${unit}: ${shown} (quartiles ${percent(0.25)} to ${percent(0.75)})\n`
}

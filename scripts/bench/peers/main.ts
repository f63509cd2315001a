import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cacheDir } from '../../local-services/wheel.ts'
import { Bench } from '../bench.ts'
import { Client } from '../client.ts'
import { cpuMs, rssMiB, settledRssMiB } from '../proc.ts'
import { Processes, type Running } from '../processes.ts'
import { median } from '../statistics.ts'
import { installPeers, type Peer } from './install.ts'

const USAGE = `npm run bench:peers -- [--rounds 3]
  Measures the bare gateway, one server of the AI SDK, one of OpenAI's Agents SDK, and the product beside each other, in rounds in which they take turns.
  The first time it installs the two packages with npm. It takes two minutes, on a machine that does nothing else.
`
const SHORT = { ms: 3_000, atOnce: 64, tokens: 20 }
const PACED = { streams: 200, tokens: 50, everyMs: 20 }
const LONG = { streams: 4, tokens: 5_000 }
const [ALONE_RUNS, STARTS, LOAD_RUNS] = [300, 5, 6_000]
const AFTER_MS = 300
const SETTLED = { calmMs: 2_000, slackMiB: 0.5, maxMs: 10_000 }
const WITHIN_MS = 3_600_000

type Side = 'bare' | Peer | 'ours'
/** A number of one round: `firstMs` is without the time of the provider itself. */
type Measured = Record<
  'firstMs' | 'shortPerSecond' | 'shortCpuMs' | 'pacedMs' | 'pacedFirstMs' | 'pacedCpuMs' | 'longPerSecond',
  number
>
type Row = { title: string; of: (side: Side) => number }

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, help: { type: 'boolean', default: false } },
})
if (options.help) process.stdout.write(USAGE)
else await main(Number(options.rounds))

async function main(rounds: number): Promise<void> {
  const processes = new Processes()
  process.once('exit', () => processes.killAll())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
  const bench = new Bench({ isQuick: false, signal: AbortSignal.timeout(WITHIN_MS), processes, shared: new Map() })
  const programs = await installPeers(join(cacheDir(), 'bench-peers'))
  const start: Record<Side, () => Promise<Running>> = {
    bare: () => bench.startBaseline(),
    'ai-sdk': () => bench.startPeer('ai-sdk', programs['ai-sdk']),
    'agents-sdk': () => bench.startPeer('agents-sdk', programs['agents-sdk']),
    ours: () => bench.startOurs('data-peers'),
  }
  const sides = Object.keys(start) as Side[]
  const startMs = bySide(sides, (): number[] => [])
  for (let n = 0; n <= STARTS; n++) {
    for (const side of sides) {
      await using running = await start[side]()
      if (n > 0) startMs[side].push(running.startMs)
    }
  }
  const running = {} as Record<Side, Running>
  for (const side of sides) running[side] = await start[side]()
  const direct = await bench.provider()
  const idle = {} as Record<Side, number>
  for (const side of sides) idle[side] = await settledRssMiB(running[side].pid, { ...SETTLED, signal: bench.signal })
  const measured = bySide(sides, (): Measured[] => [])
  for (let round = 0; round <= rounds; round++) {
    const directMs = await firstEventMs(direct, bench)
    for (const side of sides) {
      const one = await measure(running[side], bench)
      if (round > 0) measured[side].push({ ...one, firstMs: one.firstMs - directMs })
    }
  }
  for (const side of sides) await load(running[side], bench)
  const of = (key: keyof Measured) => (side: Side) => median(measured[side].map((one) => one[key]))
  print(sides, [
    { title: 'first event, added to the provider, ms', of: of('firstMs') },
    { title: `short runs (${SHORT.tokens} tokens) a second, ${SHORT.atOnce} at a time`, of: of('shortPerSecond') },
    { title: 'CPU of a short run, ms', of: of('shortCpuMs') },
    { title: `${PACED.streams} streams of ${PACED.tokens} tokens at ${PACED.everyMs} ms, ms`, of: of('pacedMs') },
    { title: 'first event of the same, p50, ms', of: of('pacedFirstMs') },
    { title: 'CPU of the same for 1,000 events, ms', of: of('pacedCpuMs') },
    { title: `events a second, ${LONG.streams} streams of ${LONG.tokens} tokens`, of: of('longPerSecond') },
    { title: 'start to a healthy answer, ms', of: (side) => median(startMs[side]) },
    { title: 'resident when idle, MiB', of: (side) => idle[side] },
    { title: 'resident after all, MiB', of: (side) => rssMiB(running[side].pid) },
  ])
  process.exit(0)
}

function bySide<T>(sides: readonly Side[], make: () => T): Record<Side, T> {
  return Object.fromEntries(sides.map((side) => [side, make()])) as Record<Side, T>
}

async function measure(gateway: Running, bench: Bench): Promise<Measured> {
  return {
    firstMs: await firstEventMs(gateway, bench),
    ...(await shortRuns(gateway, bench)),
    ...(await paced(gateway, bench)),
    longPerSecond: await long(gateway, bench),
  }
}

async function firstEventMs(gateway: Running, { signal }: Bench): Promise<number> {
  using client = new Client(gateway, signal)
  const times: number[] = []
  for (let n = 0; n < ALONE_RUNS; n++) times.push((await client.stream(SHORT.tokens)).firstMs)
  return median(times)
}

async function shortRuns(gateway: Running, { signal }: Bench) {
  using client = new Client(gateway, signal)
  const [before, began] = [cpuMs(gateway.pid), performance.now()]
  let runs = 0
  await atOnce(SHORT.atOnce, async () => {
    while (performance.now() - began < SHORT.ms) {
      await client.stream(SHORT.tokens)
      runs++
    }
  })
  const shortPerSecond = (runs * 1_000) / (performance.now() - began)
  await sleep(AFTER_MS)
  return { shortPerSecond, shortCpuMs: (cpuMs(gateway.pid) - before) / runs }
}

async function paced(gateway: Running, { signal }: Bench) {
  using client = new Client(gateway, signal)
  const [before, began] = [cpuMs(gateway.pid), performance.now()]
  const firstMs: number[] = []
  await atOnce(PACED.streams, async () => {
    firstMs.push((await client.stream(PACED.tokens, PACED)).firstMs)
  })
  const pacedMs = performance.now() - began
  await sleep(AFTER_MS)
  const events = (PACED.streams * PACED.tokens) / 1_000
  return { pacedMs, pacedFirstMs: median(firstMs), pacedCpuMs: (cpuMs(gateway.pid) - before) / events }
}

async function long(gateway: Running, { signal }: Bench): Promise<number> {
  using client = new Client(gateway, signal)
  const began = performance.now()
  await atOnce(LONG.streams, () => client.stream(LONG.tokens))
  return (LONG.streams * LONG.tokens * 1_000) / (performance.now() - began)
}

async function load(gateway: Running, { signal }: Bench): Promise<void> {
  using client = new Client(gateway, signal)
  let left = LOAD_RUNS
  await atOnce(SHORT.atOnce, async () => {
    while (left-- > 0) await client.stream(SHORT.tokens)
  })
}

async function atOnce(count: number, work: () => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: count }, work))
}

/** A table in Markdown, with the ratios of the product to each of the others. */
function print(sides: readonly Side[], rows: readonly Row[]): void {
  const shown = (value: number) => value.toFixed(value < 10 ? 2 : 0)
  const lines = [['', ...sides, 'ours / bare', 'ours / AI SDK', 'ours / Agents SDK']]
  for (const { title, of } of rows) {
    const ratios = (['bare', 'ai-sdk', 'agents-sdk'] as const).map((side) => (of('ours') / of(side)).toFixed(2))
    lines.push([title, ...sides.map((side) => shown(of(side))), ...ratios])
  }
  process.stdout.write(lines.map((cells) => `| ${cells.join(' | ')} |\n`).join(''))
}

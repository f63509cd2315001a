import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { measureFirstEvent } from './figures/first-event.ts'
import { measureIdleStreams } from './figures/idle-streams.ts'
import { measureLatency } from './figures/latency.ts'
import { measurePlacement } from './figures/placement.ts'
import { measureRunStarts } from './figures/run-starts.ts'
import { measureStalledReader } from './figures/stalled-reader.ts'
import { measureThroughput } from './figures/throughput-goals.ts'
import { watchForeignLoad } from './foreign-load.ts'
import { Peers } from './peer.ts'
import { RelayBench } from './relay-bench.ts'
import type { Row } from './row.ts'
import { renderTable } from './table.ts'

type Figure = {
  title: string
  goals: readonly string[]
  measure(bench: RelayBench, wanted: (goal: string) => boolean): Promise<Row[]>
}

const FIGURES: readonly Figure[] = [
  { goals: ['G1', 'G2', 'G3', 'G5'], title: 'events per second and CPU per event', measure: measureThroughput },
  { goals: ['G7'], title: 'latency of an event', measure: measureLatency },
  { goals: ['G8'], title: 'time to the first event', measure: measureFirstEvent },
  { goals: ['G9'], title: 'run starts per second', measure: measureRunStarts },
  { goals: ['G10', 'G11'], title: 'memory and CPU of 10,000 idle streams', measure: measureIdleStreams },
  { goals: ['G12'], title: 'placement of sessions on workers', measure: measurePlacement },
  { goals: ['G15'], title: 'a stalled reader: loss, other streams, memory', measure: measureStalledReader },
]
const GOALS = FIGURES.flatMap(({ goals }) => goals)
const FIGURE_WITHIN_MS = 150_000
const ALL_WITHIN_MS = 470_000
const MAX_FAILURE_CHARS = 300
const CALM_LOAD = 1

const USAGE = `npm run bench:relay -- [--only G7,G8] [--quick] [--profile DIR]
  --only     measure only these goals
  --quick    fewer rounds
  --profile  write the CPU profiles of all processes into this folder
Goals:
${FIGURES.map(({ goals, title }) => `  ${goals.join(', ').padEnd(22)}${title}`).join('\n')}
`
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: GOALS.join(',') },
    quick: { type: 'boolean', default: false },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const only = options.only.split(',')
const unknown = only.filter((goal) => !GOALS.includes(goal))
if (unknown.length > 0) {
  process.stderr.write(`unknown goal ${unknown.join(', ')}: choose from ${GOALS.join(',')}\n`)
  process.exit(2)
}

const peers = new Peers(options.profile)
process.once('exit', () => peers.killAll())
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const [load = 0] = loadavg()
if (load > CALM_LOAD)
  process.stdout.write(`the machine is busy (load ${load.toFixed(1)}), which makes all figures less exact\n`)
const overall = AbortSignal.timeout(ALL_WITHIN_MS)
const rows: Row[] = []
let hasFailed = false
for (const figure of FIGURES) if (figure.goals.some((goal) => only.includes(goal))) await measure(figure)
process.stdout.write(`\n${renderTable(rows)}\n`)
process.exit(hasFailed ? 1 : 0)

async function measure({ goals, measure: take }: Figure): Promise<void> {
  const start = performance.now()
  const foreignLoad = watchForeignLoad()
  try {
    await using bench = new RelayBench(peers, options.quick)
    const wanted = (goal: string) => only.includes(goal)
    const taken = await within(take(bench, wanted))
    rows.push(...taken.filter(({ goal }) => wanted(goal)))
  } catch (cause) {
    hasFailed = true
    const detail = String(cause).replaceAll(/\s+/g, ' ').slice(0, MAX_FAILURE_CHARS)
    rows.push({ goal: goals.join(' '), what: 'the measurement failed', bound: { atMost: 0 }, unit: '', detail })
  }
  const secs = ((performance.now() - start) / 1000).toFixed(1)
  const foreign = Math.max(0, Math.round(foreignLoad() * 100))
  process.stdout.write(`${goals.join(', ')}: ${secs} s, other processes used ${foreign} % of the machine\n`)
}

/** Rejects when a figure takes too long. Its processes end with the bench. */
async function within<T>(work: Promise<T>): Promise<T> {
  const timeout = AbortSignal.any([overall, AbortSignal.timeout(FIGURE_WITHIN_MS)])
  const { promise, reject } = Promise.withResolvers<never>()
  const onTimeout = () => reject(new Error('it took too long'))
  if (timeout.aborted) onTimeout()
  timeout.addEventListener('abort', onTimeout)
  return Promise.race([work, promise])
}

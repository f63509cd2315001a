import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { Bench, type SharedProcesses } from './bench.ts'
import type { Figure, Row } from './figure.ts'
import { clusterCpu, clusterFirstEvent } from './figures/cluster-runs.ts'
import { coldStart, coldStartTime } from './figures/cold-start.ts'
import { consoleFirstPaint } from './figures/console-first-paint.ts'
import { cpu } from './figures/cpu.ts'
import { dialects } from './figures/dialects.ts'
import { dispatchList } from './figures/dispatch-list.ts'
import { firstEvent } from './figures/first-event.ts'
import { flowAgents, flowRun, flowRunCluster } from './figures/flow-run.ts'
import { idleCustomers } from './figures/idle-customers.ts'
import { idleMemory } from './figures/idle-memory.ts'
import { largeAnswers } from './figures/large-answers.ts'
import { ledgerGrowth } from './figures/ledger-growth.ts'
import { loadedMemory } from './figures/loaded-memory.ts'
import { pacedCpu, pacedFirstEvent, pacedStreams } from './figures/paced-streams.ts'
import { planSubmit } from './figures/plan-submit.ts'
import { queuedWork } from './figures/queued-work.ts'
import { routing } from './figures/routing.ts'
import { sessionGrowth } from './figures/session-growth.ts'
import { shortRuns } from './figures/short-runs.ts'
import { slowReader } from './figures/slow-reader.ts'
import { team } from './figures/team.ts'
import { uploadMemory, uploads } from './figures/uploads.ts'
import { Processes } from './processes.ts'
import { renderTable } from './table.ts'

const FIGURES = [
  firstEvent,
  clusterFirstEvent,
  clusterCpu,
  shortRuns,
  cpu,
  ...dialects,
  pacedStreams,
  pacedCpu,
  pacedFirstEvent,
  sessionGrowth,
  ledgerGrowth,
  flowRun,
  flowRunCluster,
  flowAgents,
  dispatchList,
  planSubmit,
  ...queuedWork,
  team,
  coldStart,
  coldStartTime,
  consoleFirstPaint,
  idleMemory,
  loadedMemory,
  idleCustomers,
  routing,
  slowReader,
  ...largeAnswers,
  uploads,
  uploadMemory,
]
const NAMES = FIGURES.map(({ name }) => name)
const FIGURE_WITHIN_MS = 45_000
const ALL_WITHIN_MS = 400_000
const MAX_FAILURE_CHARS = 300
/** Beyond this load average, other processes distort the ratios. */
const CALM_LOAD = 1

const USAGE = `npm run bench -- [--only FIGURE]... [--quick]
  --only   measure only this figure; may be given several times
  --quick  fewer rounds
Figures:
${FIGURES.map(({ name, title }) => `  ${name.padEnd(30)}${title}`).join('\n')}
Most figures compare the product with a minimal gateway (scripts/bench/baseline.ts) in the same run.
`
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: NAMES },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const unknown = options.only.filter((name) => !NAMES.includes(name))
if (unknown.length > 0) {
  process.stderr.write(`unknown figure ${unknown.join(', ')}: choose from ${NAMES.join(', ')}\n`)
  process.exit(2)
}

const processes = new Processes()
process.once('exit', () => processes.killAll())
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const [load = 0] = loadavg()
if (load > CALM_LOAD)
  process.stdout.write(`the machine is busy (load ${load.toFixed(1)}), which makes all figures less exact\n`)
const rows = await measureAll(FIGURES.filter(({ name }) => options.only.includes(name)))
process.stdout.write(`\n${renderTable(rows)}\n`)
process.exit(rows.some(({ outcome }) => 'failure' in outcome) ? 1 : 0)

async function measureAll(figures: Figure[]): Promise<Row[]> {
  const all = AbortSignal.timeout(ALL_WITHIN_MS)
  const shared: SharedProcesses = new Map()
  const measured: Row[] = []
  for (const figure of figures) {
    const start = performance.now()
    const signal = AbortSignal.any([all, AbortSignal.timeout(FIGURE_WITHIN_MS)])
    const bench = new Bench({ isQuick: options.quick, signal, processes, shared })
    const outcome = await figure.measure(bench).catch((cause: unknown) => ({ failure: oneLine(cause) }))
    measured.push({ figure, outcome })
    process.stdout.write(`${figure.name}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`)
  }
  return measured
}

function oneLine(cause: unknown): string {
  return String(cause).replaceAll(/\s+/g, ' ').slice(0, MAX_FAILURE_CHARS)
}

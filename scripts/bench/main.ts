import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { Bench, type SharedProcesses } from './bench.ts'
import type { Figure, Row } from './figure.ts'
import { FIGURES } from './figures.ts'
import { Processes } from './processes.ts'
import { renderTable } from './table.ts'

const NAMES = FIGURES.map(({ name }) => name)
/** The longest takes half a minute on two cores that do nothing else; beside ten other programs it takes ten times as long. */
const FIGURE_WITHIN_MS = 600_000
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
  const shared: SharedProcesses = new Map()
  const measured: Row[] = []
  for (const figure of figures) {
    const start = performance.now()
    const signal = AbortSignal.timeout(FIGURE_WITHIN_MS)
    const bench = new Bench({ isQuick: options.quick, signal, processes, shared })
    const outcome = await figure.measure(bench).catch((cause: unknown) => ({ failure: oneLine(cause) }))
    measured.push({ figure, outcome })
    const failure = 'failure' in outcome ? `, not measured: ${outcome.failure}` : ''
    process.stdout.write(`${figure.name}: ${((performance.now() - start) / 1000).toFixed(1)} s${failure}\n`)
  }
  return measured
}

function oneLine(cause: unknown): string {
  return String(cause).replaceAll(/\s+/g, ' ').slice(0, MAX_FAILURE_CHARS)
}

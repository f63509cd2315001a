import { parseArgs } from 'node:util'
import { isKept, renderGuarantees } from '../harness/guarantee.ts'
import { chooseSeed } from '../harness/seed.ts'
import { renderFinding } from './finding.ts'
import { fuzz } from './fuzz.ts'

const SHORT = 500
const FULL = 100_000
const MAX_SHOWN = 40

const USAGE = `npm run fuzz -- [--full] [--seed N] [--count N]
  --full   ${FULL} generated cases, and the large cases several at a time (10 min instead of 30 s)
  --quick  the short form, which is the default
  --seed   replay the cases of this seed
  --count  generated cases, ${SHORT} by default
`
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    seed: { type: 'string' },
    count: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const seed = chooseSeed(options.seed, (line) => process.stdout.write(`${line}\n`))
const isFull = options.full && !options.quick
const { guarantees, findings, port } = await fuzz({
  seed,
  count: Number(options.count ?? (isFull ? FULL : SHORT)),
  isFull,
})

process.stdout.write(`\nhostile input (P12)\n${renderGuarantees(guarantees)}\n`)
if (findings.length > 0) process.stdout.write(`\n${findings.length} findings, seed ${seed}:\n`)
for (const finding of findings.slice(0, MAX_SHOWN)) process.stdout.write(`  ${renderFinding(finding, port)}\n`)
process.exit(guarantees.every(isKept) && findings.length === 0 ? 0 : 1)

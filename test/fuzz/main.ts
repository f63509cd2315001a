import { parseArgs } from 'node:util'
import { isKept, renderPromises } from '../harness/guarantee.ts'
import { chooseSeed } from '../harness/seed.ts'
import { renderFinding } from './finding.ts'
import { fuzz } from './fuzz.ts'

const QUICK = 2_000
const FULL = 100_000
const MAX_SHOWN = 40

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    seed: { type: 'string' },
    count: { type: 'string' },
  },
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const seed = chooseSeed(options.seed, (line) => process.stdout.write(`${line}\n`))
const isFull = options.full && !options.quick
const { promises, findings, port } = await fuzz({
  seed,
  count: Number(options.count ?? (isFull ? FULL : QUICK)),
  isFull,
})

process.stdout.write(`\nhostile input (P12)\n${renderPromises(promises)}\n`)
if (findings.length > 0) process.stdout.write(`\n${findings.length} broken, seed ${seed}:\n`)
for (const finding of findings.slice(0, MAX_SHOWN)) process.stdout.write(`  ${renderFinding(finding, port)}\n`)
process.exit(promises.every(isKept) && findings.length === 0 ? 0 : 1)

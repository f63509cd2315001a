import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderGuarantees } from '../harness/guarantee.ts'
import { chooseSeed, Random } from '../harness/seed.ts'
import type { Scenario } from './scenario.ts'
import { egress } from './scenarios/egress.ts'
import { rotation } from './scenarios/rotation.ts'
import { tenants } from './scenarios/tenants.ts'
import { uploads } from './scenarios/uploads.ts'

/** In the short form the scenarios of a group run at the same time. */
const GROUPS: readonly (readonly Scenario[])[] = [
  [tenants, rotation],
  [egress, uploads],
]
const SCENARIOS = GROUPS.flat().toSorted((a, b) => a.id.localeCompare(b.id))

const USAGE = `npm run security -- [--only P11,P14] [--full] [--seed N]
  --only   run only the scenarios of these promises: ${SCENARIOS.map(({ id }) => id).join(', ')}
  --full   the full numbers (some minutes instead of one)
  --short  the short form, which is the default
  --seed   replay the attack of this seed
`
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const say = (line: string) => void process.stdout.write(`${line}\n`)
if (options.help) {
  say(USAGE)
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const random = new Random(chooseSeed(options.seed, say))
const isFull = options.full && !options.short
const chosen = choose(options.only)
let isAllKept = true
for (const group of isFull ? chosen.flat().map((scenario) => [scenario]) : chosen) {
  const kept = await Promise.all(group.map(report))
  isAllKept &&= kept.every(Boolean)
}
say(isAllKept ? 'all kept' : 'BROKEN: see above')
process.exit(isAllKept ? 0 : 1)

/** The groups, reduced to the chosen scenarios. */
function choose(only: string | undefined): readonly (readonly Scenario[])[] {
  if (only === undefined) return GROUPS
  const ids = only.split(',').map((id) => id.trim().toUpperCase())
  const known = SCENARIOS.map(({ id }) => id)
  const unknown = ids.filter((id) => !known.includes(id))
  if (unknown.length > 0) throw new Error(`no scenario tests ${unknown.join(', ')}: choose from ${known.join(', ')}`)
  return GROUPS.map((group) => group.filter(({ id }) => ids.includes(id)))
}

/** Runs a scenario and prints its guarantees. Returns whether all of them were kept. */
async function report({ id, promise, run }: Scenario): Promise<boolean> {
  const from = performance.now()
  say(`${id} begins: ${promise}`)
  const guarantees = await run({ isFull, random: random.fork(id), say: (line) => say(`${id}   ${line}`) }).catch(failed)
  const secs = ((performance.now() - from) / 1000).toFixed(1)
  say(`\n${id}: ${promise}\n${renderGuarantees(guarantees)}\n(${secs} s)\n`)
  return guarantees.length > 0 && guarantees.every(isKept)
}

function failed(cause: unknown): Guarantee[] {
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [{ title: 'could not be measured', value: 1, unit: '', goal: { atMost: 0 }, detail }]
}

import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderGuarantees } from '../harness/guarantee.ts'
import { chooseSeed, Random } from '../harness/seed.ts'
import { LoopLag } from './loop-lag.ts'
import type { Scenario } from './scenario.ts'
import { freezeWorker } from './scenarios/freeze-worker.ts'
import { killWorker } from './scenarios/kill-worker.ts'
import { ledgerFence } from './scenarios/ledger-fence.ts'
import { ledgerKill } from './scenarios/ledger-kill.ts'
import { lossyRelay } from './scenarios/lossy-relay.ts'
import { permissionRaces } from './scenarios/permission-races.ts'
import { redisDies } from './scenarios/redis-dies.ts'
import { rollingRestart } from './scenarios/rolling-restart.ts'
import { slowReaders } from './scenarios/slow-readers.ts'
import { tokens } from './scenarios/tokens.ts'

/** The groups run one after the other. In the short form the scenarios of a group run at the same time. */
const GROUPS: readonly (readonly Scenario[])[] = [
  [killWorker, freezeWorker],
  [redisDies],
  [lossyRelay],
  [permissionRaces],
  [ledgerKill, ledgerFence],
  [rollingRestart, tokens],
  [slowReaders],
]

const USAGE = `npm run chaos -- [--only P1,P6] [--full] [--untimed] [--seed N]
  --only     run only the scenarios of these promises
  --full     the full numbers, one scenario at a time (about an hour instead of 3 min)
  --short    the short form, which is the default
  --untimed  show durations and sizes without judging them, for a machine that is busy with other work
  --seed     replay the faults of this seed
`
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    untimed: { type: 'boolean', default: false },
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

const isFull = options.full && !options.short
const random = new Random(chooseSeed(options.seed, say))
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
  const known = new Set(GROUPS.flat().map(({ id }) => id))
  const unknown = ids.filter((id) => !known.has(id))
  if (unknown.length > 0)
    throw new Error(`no scenario tests ${unknown.join(', ')}: choose from ${[...known].join(', ')}`)
  return GROUPS.map((group) => group.filter(({ id }) => ids.includes(id)))
}

/** Runs a scenario and prints its guarantees. Returns whether all of them were kept. */
async function report({ id, promise, run }: Scenario): Promise<boolean> {
  using lag = new LoopLag()
  const from = performance.now()
  say(`${id} begins: ${promise}`)
  const progress = (line: string) => say(`${id}   ${line}`)
  const guarantees = await run({ isFull, random: random.fork(id), say: progress }).catch(failed)
  const secs = ((performance.now() - from) / 1000).toFixed(1)
  say(`\n${id}: ${promise}\n${renderGuarantees(guarantees)}\n(${secs} s; ${lag.text})\n`)
  return guarantees.length > 0 && guarantees.filter(isJudged).every(isKept)
}

/** Counts, which have no unit, do not depend on the machine and are always judged. */
function isJudged({ unit }: Guarantee): boolean {
  return !options.untimed || unit === ''
}

function failed(cause: unknown): Guarantee[] {
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [{ title: 'could not be measured', value: 1, unit: '', goal: { atMost: 0 }, detail }]
}

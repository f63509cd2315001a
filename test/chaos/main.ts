import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderPromises } from '../harness/guarantee.ts'
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

/** One line after the other. Those of a line leave room for each other, and run at the same time unless each is to have the machine. */
const SCENARIOS: readonly (readonly Scenario[])[] = [
  [killWorker, freezeWorker],
  [redisDies],
  [lossyRelay],
  [permissionRaces],
  [ledgerKill, ledgerFence],
  [rollingRestart, tokens],
  [slowReaders],
]

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    // Times and sizes are shown and not judged: on a machine that others use they say little.
    untimed: { type: 'boolean', default: false },
    seed: { type: 'string' },
  },
})
const say = (line: string) => void process.stdout.write(`${line}\n`)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

const isFull = options.full && !options.short
const random = new Random(chooseSeed(options.seed, say))
const chosen = choose(options.only)
let isAllKept = true
for (const line of isFull ? chosen.flat().map((scenario) => [scenario]) : chosen) {
  const kept = await Promise.all(line.map(report))
  isAllKept &&= kept.every(Boolean)
}
say(isAllKept ? 'all kept' : 'BROKEN: see above')
process.exit(isAllKept ? 0 : 1)

/** The lines with those that are wanted. */
function choose(only: string | undefined): readonly (readonly Scenario[])[] {
  if (only === undefined) return SCENARIOS
  const ids = only.split(',').map((id) => id.trim().toUpperCase())
  const known = SCENARIOS.flat().map(({ id }) => id)
  const unknown = ids.filter((id) => !known.includes(id))
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(', ')}: there are ${known.join(', ')}`)
  return SCENARIOS.map((line) => line.filter(({ id }) => ids.includes(id)))
}

/** Runs a scenario and shows its figures. Returns whether all that it promises was kept. */
async function report({ id, promise, run }: Scenario): Promise<boolean> {
  using slip = new LoopLag()
  const from = performance.now()
  say(`${id} begins`)
  const tell = (line: string) => say(`${id}   ${line}`)
  const promised = await run({ isFull, random: random.fork(id), say: tell }).catch(failed)
  const secs = ((performance.now() - from) / 1000).toFixed(1)
  say(`\n${id}: ${promise}\n${renderPromises(promised)}\n(${secs} s; ${slip.text})\n`)
  return promised.length > 0 && promised.filter(isJudged).every(isKept)
}

/** What is counted, in no unit, is judged on any machine. */
function isJudged({ unit }: Guarantee): boolean {
  return !options.untimed || unit === ''
}

function failed(cause: unknown): Guarantee[] {
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [{ title: 'could not be measured', value: 1, unit: '', goal: { atMost: 0 }, detail }]
}

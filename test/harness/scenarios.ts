import { parseArgs } from 'node:util'
import { type Guarantee, isKept, renderGuarantees } from './guarantee.ts'
import { LoopLag } from './loop-lag.ts'
import type { Scenario } from './scenario.ts'
import { chooseSeed, Random } from './seed.ts'

export type ScenarioScript = {
  /** As in `npm run <name>`. */
  name: string
  /** In the order in which they begin: the longest first, since one that begins last delays the end. */
  scenarios: readonly Scenario[]
  /** How many run at the same time in the short form, where they wait most of their time. In the full form it is one. */
  lanes: number
  /** How long both forms take, for the help. */
  takes: { short: string; full: string }
}

type Run = { isFull: boolean; isTimed: boolean; random: Random }

const say = (line: string) => void process.stdout.write(`${line}\n`)

/** The command line of a script of scenarios. Exits with 0 when every guarantee was kept, with 1 otherwise. */
export async function runScenarios(script: ScenarioScript): Promise<never> {
  const options = optionsOf()
  if (options.help) {
    say(usageOf(script))
    process.exit(0)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))
  const isFull = options.full && !options.short
  const run = { isFull, isTimed: !options.untimed, random: new Random(chooseSeed(options.seed, say)) }
  const waiting = chooseScenarios(script.scenarios, { isFull, only: options.only?.join() }).values()
  let isAllKept = true
  const runLane = async () => {
    for (const scenario of waiting) if (!(await report(scenario, run))) isAllKept = false
  }
  await Promise.all(Array.from({ length: isFull ? 1 : script.lanes }, runLane))
  say(isAllKept ? 'all kept' : 'BROKEN: see above')
  process.exit(isAllKept ? 0 : 1)
}

function optionsOf() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true },
      short: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      untimed: { type: 'boolean', default: false },
      seed: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  return values
}

const idsOf = (scenarios: readonly Scenario[]): string[] =>
  [...new Set(scenarios.map(({ id }) => id))].toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1)))

const usageOf = ({ name, scenarios, takes }: ScenarioScript) => `npm run ${name} -- [options]
  --only     run only the scenarios of these promises, separated by commas, or --only again: ${idsOf(scenarios).join(', ')}
  --full     the full numbers, one scenario at a time (${takes.full} instead of ${takes.short})
  --short    the short form, which is the default
  --untimed  show durations and sizes without judging them, for a machine that is busy with other work
  --seed     replay the faults of this seed
`

type Choice = { isFull: boolean; only?: string | undefined }

/** Those of this form: of the promises that `only` names, separated by commas, or of all. Throws for a promise that has none. */
export function chooseScenarios(all: readonly Scenario[], { isFull, only }: Choice): readonly Scenario[] {
  const scenarios = all.filter((each) => isFull || !each.isFullOnly)
  if (only === undefined) return scenarios
  const ids = only.split(',').map((id) => id.trim().toUpperCase())
  const known = idsOf(all)
  const unknown = ids.filter((id) => !known.includes(id))
  if (unknown.length > 0) throw new Error(`no scenario tests ${unknown.join(', ')}: choose from ${known.join(', ')}`)
  const chosen = scenarios.filter(({ id }) => ids.includes(id))
  const left = ids.filter((id) => chosen.every((each) => each.id !== id))
  if (left.length > 0) throw new Error(`${left.join(', ')} has no short form: add --full`)
  return chosen
}

/** Runs a scenario and prints its guarantees. Returns whether all of them were kept. */
async function report({ id, promise, run }: Scenario, { isFull, isTimed, random }: Run): Promise<boolean> {
  using lag = new LoopLag()
  const from = performance.now()
  say(`${id} begins: ${promise}`)
  const progress = (line: string) => say(`${id}   ${line}`)
  const guarantees = await run({ isFull, random: random.fork(id), say: progress }).catch(failed)
  const secs = ((performance.now() - from) / 1000).toFixed(1)
  say(`\n${id}: ${promise}\n${renderGuarantees(guarantees)}\n(${secs} s; ${lag.text})\n`)
  /** Counts, which have no unit, do not depend on the machine and are always judged. */
  const judged = guarantees.filter(({ unit }) => isTimed || unit === '')
  return guarantees.length > 0 && judged.every(isKept)
}

function failed(cause: unknown): Guarantee[] {
  const detail = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  return [{ title: 'could not be measured', value: 1, unit: '', goal: { atMost: 0 }, detail }]
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../../../harness/guarantee.ts'
import type { ScenarioOptions } from '../../../harness/scenario.ts'
import { until } from '../../../support/until.ts'
import { check, noViolations } from '../../checker.ts'
import type { Fault } from '../fault.ts'
import { Standalone } from '../ledger/standalone.ts'
import { planGuarantees, tallyPlans } from './judge.ts'
import { PlanLoad } from './load.ts'
import { StepModel } from './model.ts'

const CLIENTS = 8

/** Kills the standalone process again and again while plans run, and starts it with what it has stored. */
export async function killStandalone({ random, say }: ScenarioOptions, restarts: number): Promise<Guarantee[]> {
  await using model = await StepModel.start()
  await using standalone = new Standalone(model.env)
  await standalone.start()
  const load = new PlanLoad(() => standalone.url, { name: 'single', random: random.fork('standalone load') })
  const stop = new AbortController()
  const running = load.run(CLIENTS, stop.signal)
  const faults: Fault[] = []
  const times = random.fork('standalone faults')
  for (let n = 0; n < restarts; n++) {
    const { begun } = model
    await until(() => model.begun > begun, { what: 'a step to begin', withinMs: 60_000 })
    await sleep(times.between(500, 1_500))
    faults.push({ from: Date.now(), until: Date.now() })
    await standalone.kill()
    await standalone.start()
  }
  stop.abort()
  await running
  say(`standalone killed ${restarts} times: ${tallyPlans(load)}`)
  const guarantees = planGuarantees({ load, model, faults }, restarts)
  return [
    ...guarantees.map((each) => ({ ...each, title: `standalone: ${each.title}` })),
    noViolations(check(standalone.history)),
  ]
}

import type { Guarantee } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { tryGateways } from './tokens/gateways.ts'
import { sendHostileKeys } from './tokens/hostile-keys.ts'
import { tryOverTime } from './tokens/outage.ts'

const KIDS = { short: 300, full: 5_000 }

/** Forged tokens and unknown keys, and an identity provider that is away, rotates its keys or sends invalid ones. */
export const tokens: Scenario = {
  id: 'P15',
  promise: 'no forged token is accepted, and valid ones are during an outage of the identity provider',
  run,
}

/** Runs the parts in real time and those with a manual clock at the same time. */
async function run({ isFull, random }: ScenarioOptions): Promise<Guarantee[]> {
  const onManualClock = async () => [...(await tryOverTime()), ...(await sendHostileKeys())]
  const [inRealTime, onClock] = await Promise.all([
    tryGateways(random, KIDS[isFull ? 'full' : 'short']),
    onManualClock(),
  ])
  return [...inRealTime, ...onClock]
}

import type { Guarantee } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { tryGateways } from './tokens/gateways.ts'
import { sendHostileKeys } from './tokens/hostile-keys.ts'
import { passTime } from './tokens/outage.ts'

const KIDS = 5_000

/** Forged tokens, and an identity provider that floods, goes away, changes its keys and sends nonsense. */
export const tokens: Scenario = {
  id: 'P15',
  promise: 'tokens fail closed, and an outage of the identity provider is survived',
  run,
}

/** What takes real time, and beside it what goes by a clock that is moved by hand. */
async function run({ random }: ScenarioOptions): Promise<Guarantee[]> {
  const byHand = async () => [...(await passTime()), ...(await sendHostileKeys())]
  const [inRealTime, moved] = await Promise.all([tryGateways(random, KIDS), byHand()])
  return [...inRealTime, ...moved]
}

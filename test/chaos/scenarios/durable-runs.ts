import type { Guarantee } from '../../harness/guarantee.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { type Kills, measureKills } from './durable-runs/measure.ts'

const NO_OTHERS = { mode: 'runs', killsOthers: false, failsOver: false } as const
/** So many sessions that the worker which is killed hardly ever has none. */
const SHORT: Kills = { ...NO_OTHERS, sessions: 12, oneShots: 4, sleepMs: 80, workers: 2, forMs: 2_000, everyMs: 2_000 }
/** Replies at a person's reading pace: two hundred clients with shorter ones would saturate two cores. */
const FULL: Kills = {
  ...{ ...NO_OTHERS, sessions: 180, oneShots: 20, sleepMs: 400, workers: 4 },
  ...{ forMs: 600_000, everyMs: 10_000 },
}

/** Kills one worker after the other while clients talk in sessions, and replaces each. `npm run chaos:durability` has the other forms. */
export const durableRuns: Scenario = {
  id: 'P21',
  promise: 'with DURABILITY=runs the death of a worker ends no stream, changes no event, and repeats no effect',
  run: ({ isFull, ...options }: ScenarioOptions): Promise<Guarantee[]> => measureKills(isFull ? FULL : SHORT, options),
}

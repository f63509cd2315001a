import type { Guarantee } from '../harness/guarantee.ts'
import type { Random } from '../harness/seed.ts'

export type ScenarioOptions = {
  /** The numbers of reliability.md §3, else scaled ones that take seconds. */
  isFull: boolean
  /** A fork of the run's: the same seed makes the same faults. */
  random: Random
  /** For progress, a line at a time. */
  say(line: string): void
}

/** Breaks a cluster in one way and measures what was promised about that. */
export type Scenario = {
  /** Of reliability.md §3: `P1`. */
  id: string
  promise: string
  /** Throws when it could not be measured; a promise that is broken is no error. */
  run(options: ScenarioOptions): Promise<Guarantee[]>
}

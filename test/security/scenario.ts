import type { Guarantee } from '../harness/guarantee.ts'
import type { Random } from '../harness/seed.ts'

export type ScenarioOptions = {
  /** The full numbers; otherwise smaller ones that take seconds. */
  isFull: boolean
  /** A fork of the main generator: the same seed causes the same attack. */
  random: Random
  /** Prints a line of progress. */
  say(line: string): void
}

/** Attacks one promise and measures whether it is kept. */
export type Scenario = {
  /** The promise's number in test/README.md, such as `P11`. */
  id: string
  promise: string
  /** Throws when it could not measure. A broken promise is not an error. */
  run(options: ScenarioOptions): Promise<Guarantee[]>
}

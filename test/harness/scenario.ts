import type { Guarantee } from './guarantee.ts'
import type { Random } from './seed.ts'

export type ScenarioOptions = {
  /** The full numbers; otherwise smaller ones that take seconds. */
  isFull: boolean
  /** A fork of the main generator: the same seed causes the same faults or attacks. */
  random: Random
  /** Prints a line of progress. */
  say(line: string): void
}

/** Injects one kind of fault, or attacks in one way, and measures what is promised for it. */
export type Scenario = {
  /** The promise's number in test/README.md, such as `P1`. */
  id: string
  promise: string
  /** It has no short form: without `--full` it does not run. */
  isFullOnly?: boolean
  /** Throws when it could not measure. A broken promise is not an error. */
  run(options: ScenarioOptions): Promise<Guarantee[]>
}

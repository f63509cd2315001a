import type { Bench } from './bench.ts'

export type Goal = { atMost: number } | { atLeast: number }

/** A measurement with a goal. */
export type Figure = {
  /** Its name for `--only`. */
  name: string
  title: string
  goal: Goal
  unit: 'x' | ' MiB' | ' us' | ' ms' | ' calls'
  /** Throws when it could not measure. A missed goal is not an error. */
  measure(bench: Bench): Promise<Measured>
}

export type Measured = {
  value: number
  /** The absolute numbers behind the value. They are comparable only within one run. */
  detail: string
}

export type Row = { figure: Figure; outcome: Measured | { failure: string } }

export function isMet(goal: Goal, value: number): boolean {
  return 'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast
}

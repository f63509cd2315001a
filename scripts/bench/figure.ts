import type { Bench } from './bench.ts'

export type Goal = { atMost: number } | { atLeast: number }

/** One number that the bench judges. */
export type Figure = {
  /** What `--only` calls it. */
  name: string
  title: string
  goal: Goal
  unit: 'x' | ' MiB'
  /** Throws when it could not be measured; a goal that is missed is no error. */
  measure(bench: Bench): Promise<Measured>
}

export type Measured = {
  value: number
  /** The absolute numbers behind the value, for a reader who compares them within this run only. */
  detail: string
}

export type Row = { figure: Figure; outcome: Measured | { failure: string } }

export function isMet(goal: Goal, value: number): boolean {
  return 'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast
}

import { type Goal, isMet } from '../figure.ts'

/** A measured number with its goal. */
export type Row = {
  /** The goal's id for `--only`, such as `G1`. */
  goal: string
  what: string
  /** Absent when it was not measured; `detail` says why. */
  value?: number
  bound: Goal
  unit: 'x' | ' us' | ' ms' | ' %' | ' MiB' | ''
  detail: string
}

/** `kept`, `missed` or `not measured`. */
export const outcomeOf = ({ value, bound }: Row): string => {
  if (value === undefined) return 'not measured'
  return isMet(bound, value) ? 'kept' : 'missed'
}

import { type Goal, isMet } from '../figure.ts'

/** One judged number; its bound is performance.md's. */
export type Row = {
  /** `G1` and so on; `--only` takes it. */
  goal: string
  what: string
  /** Absent where it was not measured; the detail says why. */
  value?: number
  bound: Goal
  unit: 'x' | ' us' | ' ms' | ' %' | ' MiB' | ''
  detail: string
}

export const wordOf = ({ value, bound }: Row): string => {
  if (value === undefined) return 'not measured'
  return isMet(bound, value) ? 'kept' : 'missed'
}

export type Limits = {
  /** From a worker's death to the terminal event of its streams (reliability.md: T_term). */
  termMs: number
  /** A freeze shorter than this is no death (T_dead). */
  deadMs: number
  /** From a terminal event to the end of its stream. */
  closeMs: number
  /** What two observers' clocks and logs may differ by. */
  slackMs: number
  /** What a process may grow by (P9). */
  growthMiB: number
}

export const LIMITS: Limits = { termMs: 5000, deadMs: 4000, closeMs: 1000, slackMs: 50, growthMiB: 300 }

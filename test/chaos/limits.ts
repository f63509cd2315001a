export type Limits = {
  /** From a worker's death to the terminal event of its streams: 4 s until it is evicted, and the fan-out. */
  termMs: number
  /** A worker that is frozen for a shorter time is not evicted. */
  deadMs: number
  /** From a terminal event to the end of the response. */
  closeMs: number
  /** Tolerance for the differences between observers' clocks. */
  slackMs: number
  /** Growth of a process's resident memory (P9). */
  growthMiB: number
}

/** Limits of a machine whose durations are not judged, as the other durations of a scenario. */
const UNTIMED = { termMs: 60_000, closeMs: 30_000 }

export const LIMITS: Limits = {
  termMs: 5000,
  deadMs: 4000,
  closeMs: 1000,
  slackMs: 50,
  growthMiB: 300,
  ...(process.argv.includes('--untimed') && UNTIMED),
}

import type { Taken } from './port.ts'

/** The limit is a number of requests per minute (api.md "Limits"). */
export const WINDOW_MS = 60_000

export type WindowState = {
  isAllowed: boolean
  limit: number
  /** Requests in the window, including this one if it is allowed. */
  count: number
  /** Age of the oldest of them. */
  oldestMs: number
  windowMs?: number
}

/** Derives the numbers of the RateLimit headers. `resetSecs` is at least 1. */
export function takenOf({ isAllowed, limit, count, oldestMs, windowMs = WINDOW_MS }: WindowState): Taken {
  return {
    isAllowed,
    limit,
    remaining: Math.max(0, limit - count),
    resetSecs: Math.max(1, Math.ceil((windowMs - oldestMs) / 1000)),
  }
}

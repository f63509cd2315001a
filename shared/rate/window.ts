import type { Taken } from './port.ts'

/** api.md "Limits": requests a minute. */
export const WINDOW_MS = 60_000

export type Look = {
  isAllowed: boolean
  limit: number
  /** Requests in the window, this one included where it is allowed. */
  count: number
  /** For how long the oldest of them is in the window. */
  oldestMs: number
  windowMs?: number
}

export function takenOf({ isAllowed, limit, count, oldestMs, windowMs = WINDOW_MS }: Look): Taken {
  return {
    isAllowed,
    limit,
    remaining: Math.max(0, limit - count),
    resetSecs: Math.max(1, Math.ceil((windowMs - oldestMs) / 1000)),
  }
}

export type Taken = {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Until the oldest counted request leaves the window. */
  resetSecs: number
}

/** Counts requests by client in a sliding window (api.md "Limits"). A refused request is not counted. */
export interface RateLimiter {
  take(key: string): Taken | Promise<Taken>
}

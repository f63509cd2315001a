/** The result of counting one request. */
export type Taken = {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Seconds until the oldest counted request leaves the window. */
  resetSecs: number
}

/** Counts the requests of each client in a sliding window of a minute (api.md "Limits"). A refused request is not counted. */
export interface RateLimiter {
  /** `perMinute` replaces the limiter's own limit for this key. */
  take(key: string, perMinute?: number): Taken | Promise<Taken>
}

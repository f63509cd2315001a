import type { MembershipTimes } from './membership-times.ts'
import { elapsedMs, now } from './moment.ts'

/** Whether this process has seen for long enough, without a break, which members renew their leases. */
export class Steadiness {
  readonly #times: Pick<MembershipTimes, 'tickMs' | 'maxTickDelayMs' | 'steadyMs'>
  #lastSeenAt = now()
  #since = performance.now()

  constructor(times: Pick<MembershipTimes, 'tickMs' | 'maxTickDelayMs' | 'steadyMs'>) {
    this.#times = times
  }

  /** Starts the time again. */
  reset(): void {
    this.#since = performance.now()
  }

  /**
   * To be called at each tick, and with each answer of Redis. While this process was suspended it did not see others renew, so it must
   * not evict them for that time. When the whole machine was, they could not renew either.
   */
  check(): void {
    const seenAt = now()
    const { tickMs, maxTickDelayMs } = this.#times
    if (elapsedMs(this.#lastSeenAt, seenAt) > tickMs + maxTickDelayMs) this.#since = seenAt.monotonic
    this.#lastSeenAt = seenAt
  }

  isSteady(): boolean {
    return performance.now() - this.#since >= this.#times.steadyMs
  }
}

/**
 * The clock of MongoDB's primary, seen from this process. It lets the server itself refuse a write that reaches it too late, which no
 * check in this process can do: the process may be paused between the check and the sending.
 */
export class ServerClock {
  #offsetMs = 0

  /** Notes the server's time in an answer that was just received. */
  observe(serverTime: Date): void {
    this.#offsetMs = serverTime.getTime() - performance.now()
  }

  /**
   * The server's time at a moment of this process's monotonic clock. It is too early by the duration of the answer, and far in the past
   * before the first answer, so that a write is refused rather than late.
   */
  at(monotonicMs: number): Date {
    return new Date(Math.max(0, monotonicMs) + this.#offsetMs)
  }
}

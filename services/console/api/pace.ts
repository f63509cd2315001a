const MINUTE_MS = 60_000
/** Turns that are free at once after a while without any: what a page shows is read again together. */
const BURST = 4

/**
 * Keeps the readings that nobody has asked for from using up the caller's requests a minute, which people's own clicks need: a tab makes no
 * more of them in a minute than half of those that are left. So however many lists of however many tabs follow a busy tenant, some always are.
 */
export class Pace {
  #left = Number.POSITIVE_INFINITY
  #turns = BURST
  #at = 0

  /** What the server counts, the requests of other tabs included. */
  learn(headers: Headers): void {
    const left = headers.get('ratelimit-remaining')
    if (left !== null) this.#left = Number(left)
  }

  /** Takes a turn where one is free and returns 0, or the time until there may be one. */
  turnMs(now: number): number {
    if (this.#left === Number.POSITIVE_INFINITY) return 0
    const gapMs = MINUTE_MS / Math.max(1, this.#left / 2)
    this.#turns = Math.min(BURST, this.#turns + (now - this.#at) / gapMs)
    this.#at = now
    if (this.#turns < 1) return (1 - this.#turns) * gapMs
    this.#turns--
    return 0
  }

  /** Counts one more request of a reading that has its turn. */
  more(): void {
    this.#turns--
  }
}

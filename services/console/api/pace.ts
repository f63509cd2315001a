const MINUTE_MS = 60_000
/** How many reads may happen at once after a pause, so that all lists of a page can be read together. */
const BURST = 4

/**
 * Limits automatic reads, so that enough of the caller's requests per minute are left for clicks: a tab uses at most half of the remaining
 * requests for them. So some requests always remain, for any number of lists and tabs.
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

  /** If a read is allowed now, counts it and returns 0; otherwise returns the time until one may be allowed. */
  turnMs(now: number): number {
    if (this.#left === Number.POSITIVE_INFINITY) return 0
    const gapMs = MINUTE_MS / Math.max(1, this.#left / 2)
    this.#turns = Math.min(BURST, this.#turns + (now - this.#at) / gapMs)
    this.#at = now
    if (this.#turns < 1) return (1 - this.#turns) * gapMs
    this.#turns--
    return 0
  }

  /** Counts a further request of a read that was allowed. */
  more(): void {
    this.#turns--
  }
}

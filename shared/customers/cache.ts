export type CacheLimits = {
  maxLines: number
  /** Unused for so long, a line is let go; negative: never. */
  idleMs: number
}

export type Held<Line> = { line: Line; release(): void }

type Entry<Line> = { line: Line; users: number; idleTimer: NodeJS.Timeout | undefined }

/**
 * The customers' lines that were used last (api.md Limits "customer engine cache"). One that a run holds is never evicted, so
 * that there may be more than `maxLines` for as long as more are in use.
 */
export class LineCache<Line, Owner> {
  readonly #limits: CacheLimits
  readonly #open: (owner: Owner) => Line
  /** In the order of use, the oldest first. */
  readonly #entries = new Map<string, Entry<Line>>()

  constructor(limits: CacheLimits, open: (owner: Owner) => Line) {
    this.#limits = limits
    this.#open = open
  }

  get size(): number {
    return this.#entries.size
  }

  /** Holds the owner's line until it is released; `key` is the owner's and no other's. */
  hold(key: string, owner: Owner): Held<Line> {
    const entry = this.#entries.get(key) ?? { line: this.#open(owner), users: 0, idleTimer: undefined }
    clearTimeout(entry.idleTimer)
    entry.users++
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    this.#evict()
    let isHeld = true
    return {
      line: entry.line,
      release: () => {
        if (isHeld) this.#release(key, entry)
        isHeld = false
      },
    }
  }

  #release(key: string, entry: Entry<Line>): void {
    if (--entry.users > 0) return
    const { idleMs } = this.#limits
    if (idleMs >= 0) entry.idleTimer = setTimeout(() => this.#entries.delete(key), idleMs).unref()
    this.#evict()
  }

  #evict(): void {
    for (const [key, { users, idleTimer }] of this.#entries) {
      if (this.#entries.size <= this.#limits.maxLines) return
      if (users > 0) continue
      clearTimeout(idleTimer)
      this.#entries.delete(key)
    }
  }
}

export type CacheLimits = {
  maxLines: number
  /** A line that has been unused for this long is removed; negative: never. */
  idleMs: number
}

/** A line in use. It stays in the cache until `release`, which may be called more than once. */
export type HeldLine<Line> = { line: Line; release(): void }

type Entry<Line> = { line: Line; users: number; idleTimer: NodeJS.Timeout | undefined }

/**
 * The customers' lines that were used most recently (api.md Limits "customer engine cache"). A line that a run uses is never
 * evicted, so the cache exceeds `maxLines` while more are in use.
 */
export class LineCache<Line, Owner> {
  readonly #limits: CacheLimits
  readonly #open: (owner: Owner) => Line
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry<Line>>()

  constructor(limits: CacheLimits, open: (owner: Owner) => Line) {
    this.#limits = limits
    this.#open = open
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns the owner's line and keeps it until it is released. `key` identifies the owner. */
  hold(key: string, owner: Owner): HeldLine<Line> {
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

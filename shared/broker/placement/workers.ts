import type { Member } from './members.ts'
import { Ring } from './ring.ts'

/** So many deaths within so long are a crash loop: then who has not lived for as long is not given anything (reliability.md, WK row). */
const CRASHES = 3
const CRASH_WINDOW_MS = 60_000

/** The workers as one process sees them: who lives, who takes new work, and where a session belongs. */
export class Workers {
  readonly #now: () => number
  readonly #firstSeen = new Map<number, number>()
  #all: readonly Member[] = []
  #living: ReadonlySet<number> = new Set()
  #takers: readonly Member[] = []
  #ring = Ring.EMPTY
  #deaths: number[] = []
  #hasLooked = false

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Those that take new work; a draining one is still asked for what it has. */
  get eligible(): readonly Member[] {
    return this.#takers
  }

  get alive(): ReadonlySet<number> {
    return this.#living
  }

  isAlive(epoch: number): boolean {
    return this.#living.has(epoch)
  }

  /** The worker that a key belongs to by consistent hashing (design §4.7), or would without that one. */
  ownerOf(key: string, without?: number): number | undefined {
    const ring = without === undefined ? this.#ring : this.#ring.leave(without)
    return ring.ownerOf(key)
  }

  /** The members have been listed anew. */
  update(members: readonly Member[]): void {
    const before = this.#all
    this.#all = members.filter(({ role }) => role === 'worker')
    this.#living = new Set(this.#all.map(({ epoch }) => epoch))
    this.#remember(before)
    const active = this.#all.filter(({ state }) => state === 'active')
    const renewed = active.filter(({ expiresInMs }) => expiresInMs > 0)
    const trusted = renewed.filter(({ epoch }) => this.#isTrusted(epoch))
    // After a restart of most workers the old ones alone would be too few: then nobody is kept waiting.
    const takers = trusted.length * 2 >= renewed.length ? trusted : renewed
    this.#give(takers.length > 0 ? takers : active)
  }

  /** Who is missing without having said that it leaves has died. */
  #remember(before: readonly Member[]): void {
    const now = this.#now()
    for (const { epoch, state } of before) {
      if (this.#living.has(epoch)) continue
      this.#firstSeen.delete(epoch)
      if (state === 'active') this.#deaths.push(now)
    }
    this.#deaths = this.#deaths.filter((at) => now - at < CRASH_WINDOW_MS)
    // Who is there already when this process looks for the first time counts as old.
    for (const epoch of this.#living) {
      if (!this.#firstSeen.has(epoch)) this.#firstSeen.set(epoch, this.#hasLooked ? now : -Infinity)
    }
    this.#hasLooked = true
  }

  /** A process has no name that outlives it; in a crash loop it is the newcomers that cannot be trusted. */
  #isTrusted(epoch: number): boolean {
    if (this.#deaths.length < CRASHES) return true
    return this.#now() - (this.#firstSeen.get(epoch) ?? 0) >= CRASH_WINDOW_MS
  }

  #give(takers: readonly Member[]): void {
    const before = new Set(this.#takers.map(({ epoch }) => epoch))
    const now = new Set(takers.map(({ epoch }) => epoch))
    for (const epoch of now.difference(before)) this.#ring = this.#ring.join(epoch)
    for (const epoch of before.difference(now)) this.#ring = this.#ring.leave(epoch)
    this.#takers = takers
  }
}

import { setImmediate } from 'node:timers/promises'
import { HashRing } from './hash-ring.ts'
import type { Member } from './members.ts'

/** This many crashes within the window are a crash loop: a worker younger than the window is then given no new work. */
const CRASHES = 3
const CRASH_WINDOW_MS = 60_000
const REVIEW_MS = 500

/** The workers that one process knows: which are alive, which take new work, and to which of them a session hashes. */
export class Workers {
  readonly #now: () => number
  readonly #firstSeen = new Map<number, number>()
  readonly #ring = new HashRing()
  #all: readonly Member[] = []
  #alive: ReadonlySet<number> = new Set()
  #eligible: readonly Member[] = []
  #eligibleEpochs: ReadonlySet<number> = new Set()
  #isRingCurrent = true
  #preparing: Promise<void> | undefined
  #reviewAt = Infinity
  #crashes: number[] = []
  #isFirstUpdate = true

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The workers that take new work. */
  get eligible(): readonly Member[] {
    if (this.#now() >= this.#reviewAt) this.#review()
    return this.#eligible
  }

  /** Epochs of all workers. Those that drain or are too young for new work still answer for the runs and sessions they have. */
  get alive(): ReadonlySet<number> {
    return this.#alive
  }

  isAlive(epoch: number): boolean {
    return this.#alive.has(epoch)
  }

  isDraining(epoch: number): boolean {
    return this.#all.some((worker) => worker.epoch === epoch && worker.state === 'draining')
  }

  /**
   * The eligible worker that a key hashes to, or the one it would hash to if `without` were not eligible. When many workers have joined at
   * once, most are used only from later turns of the event loop on.
   */
  ownerOf(key: string, without?: number): number | undefined {
    this.#followEligible()
    if (!this.#isRingCurrent) void this.prepare()
    return this.#ring.ownerOf(key, without)
  }

  /** Adds the eligible workers to the ring, few in each turn of the event loop. Simultaneous calls share the work. */
  prepare(): Promise<void> {
    this.#preparing ??= this.#prepare().finally(() => {
      this.#preparing = undefined
    })
    return this.#preparing
  }

  /** Applies a new list of members. */
  update(members: readonly Member[]): void {
    const before = this.#all
    this.#all = members.filter(({ role }) => role === 'worker')
    this.#alive = new Set(this.#all.map(({ epoch }) => epoch))
    this.#recordChanges(before)
    this.#review()
  }

  async #prepare(): Promise<void> {
    while (!this.#isRingCurrent) {
      await setImmediate()
      this.#followEligible()
    }
  }

  /** Updates the ring to the eligible workers. It is empty only when no worker is eligible. */
  #followEligible(): void {
    if (this.#now() >= this.#reviewAt) this.#review()
    if (!this.#isRingCurrent) this.#isRingCurrent = this.#ring.follow(this.#eligibleEpochs)
  }

  /** Decides which workers are eligible. After crashes this changes with time. */
  #review(): void {
    const now = this.#now()
    this.#crashes = this.#crashes.filter((at) => now - at < CRASH_WINDOW_MS)
    this.#reviewAt = this.#crashes.length < CRASHES ? Infinity : now + REVIEW_MS
    const active = this.#all.filter(({ state }) => state === 'active')
    const renewed = active.filter(({ expiresInMs }) => expiresInMs > 0)
    const trusted = renewed.filter(({ epoch }) => this.#isTrusted(epoch))
    // When most workers are young, the old ones alone would be too few: all are eligible then.
    const eligible = trusted.length * 2 >= renewed.length ? trusted : renewed
    this.#eligible = eligible.length > 0 ? eligible : active
    this.#eligibleEpochs = new Set(this.#eligible.map(({ epoch }) => epoch))
    this.#isRingCurrent = false
  }

  /** Counts crashes and notes new workers. A worker that vanished without draining has crashed. */
  #recordChanges(before: readonly Member[]): void {
    const now = this.#now()
    for (const { epoch, state } of before) {
      if (this.#alive.has(epoch)) continue
      this.#firstSeen.delete(epoch)
      if (state === 'active') this.#crashes.push(now)
    }
    // The ages of workers in the first list are unknown: they count as old.
    for (const epoch of this.#alive) {
      if (!this.#firstSeen.has(epoch)) this.#firstSeen.set(epoch, this.#isFirstUpdate ? -Infinity : now)
    }
    this.#isFirstUpdate = false
  }

  /** A restarted process has a new epoch, so a worker that keeps crashing can only be recognised by being young. */
  #isTrusted(epoch: number): boolean {
    if (this.#crashes.length < CRASHES) return true
    return this.#now() - (this.#firstSeen.get(epoch) ?? 0) >= CRASH_WINDOW_MS
  }
}

/**
 * Draws two workers at random and picks the one with fewer runs. This spreads runs nearly as evenly as comparing all, and
 * gateways do not all pick the same one.
 */
export function lessLoadedOfTwo<T extends { load: number }>(
  workers: readonly T[],
  random: () => number,
): T | undefined {
  const draw = () => workers[Math.floor(random() * workers.length)]
  const [a, b] = [draw(), draw()]
  return a && b && b.load < a.load ? b : a
}

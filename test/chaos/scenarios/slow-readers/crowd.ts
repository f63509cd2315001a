import { setTimeout as sleep } from 'node:timers/promises'
import { now } from '../../history.ts'
import type { Member } from '../../world.ts'
import { counted } from '../counters.ts'
import { NeverReader } from './readers.ts'

const LOOK_EVERY_MS = 200
const FILLED_WITHIN_MS = 25_000
/** Nothing has moved for so long. */
const STILL_MS = 1_500
const CUT_WITHIN_MS = 45_000

export type Cut = { atLeast: number; atMost: number }

type Shape = { count: number; prompt: string }
type Opened = { readers: readonly NeverReader[]; openedAt: number; cutBefore: number }

/** Clients that never read, all on one gateway. Disposing of it lets them leave. */
export class Crowd implements Disposable {
  readonly #gateway: Member
  readonly #readers: readonly NeverReader[]
  readonly #openedAt: number
  readonly #cutBefore: number
  #filledAt = 0

  private constructor(gateway: Member, { readers, openedAt, cutBefore }: Opened) {
    this.#gateway = gateway
    this.#readers = readers
    this.#openedAt = openedAt
    this.#cutBefore = cutBefore
  }

  static async open(gateway: Member, { count, prompt }: Shape): Promise<Crowd> {
    const cutBefore = await counted([gateway], 'slow_consumers')
    const openedAt = now()
    const readers = await Promise.all(Array.from({ length: count }, () => NeverReader.open(gateway.url, prompt)))
    return new Crowd(gateway, { readers, openedAt, cutBefore })
  }

  /** How long that took. */
  get filledInSecs(): number {
    return (this.#filledAt - this.#openedAt) / 1000
  }

  /** Resolves when the gateway gets nothing more for anyone: the network is full, and the runs wait for their readers. */
  async filled(): Promise<void> {
    const end = now() + FILLED_WITHIN_MS
    let relayed = -1
    let stillSince = now()
    while (now() - stillSince < STILL_MS) {
      if (now() > end) throw new Error('the clients that do not read are never full')
      await sleep(LOOK_EVERY_MS)
      const count = await counted([this.#gateway], 'frames_relayed')
      if (count !== relayed) stillSince = now()
      relayed = count
    }
    this.#filledAt = stillSince
  }

  /**
   * When each was cut off, in seconds, at least and at most: from when the last, and the first of them, may have stopped
   * taking. One that was not is `Infinity`.
   */
  async cuts(): Promise<Cut[]> {
    const cuts: Cut[] = []
    const end = this.#filledAt + CUT_WITHIN_MS
    const count = this.#readers.length
    while (cuts.length < count && now() < end) {
      await sleep(LOOK_EVERY_MS)
      const gone = (await counted([this.#gateway], 'slow_consumers')) - this.#cutBefore
      const cut = { atLeast: (now() - this.#filledAt) / 1000, atMost: (now() - this.#openedAt) / 1000 }
      while (cuts.length < gone) cuts.push(cut)
    }
    while (cuts.length < count) cuts.push({ atLeast: Number.POSITIVE_INFINITY, atMost: Number.POSITIVE_INFINITY })
    return cuts
  }

  /** Those that now read on and find why they were cut off. */
  async told(): Promise<number> {
    const tails = await Promise.all(this.#readers.map((reader) => reader.readOn()))
    return tails.filter((tail) => tail.includes('"code":"slow_consumer"')).length
  }

  [Symbol.dispose](): void {
    for (const reader of this.#readers) reader.leave()
  }
}

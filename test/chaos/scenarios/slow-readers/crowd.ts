import { setTimeout as sleep } from 'node:timers/promises'
import { NeverReader } from '../../../../scripts/bench/never-reader.ts'
import { until } from '../../../support/until.ts'
import { sumCounter } from '../../counters.ts'
import { now } from '../../history.ts'
import type { Member } from '../../world.ts'

const LOOK_EVERY_MS = 200
const STALL_WITHIN_MS = 25_000
/** The gateway relays nothing for this long. */
const STILL_MS = 1_500
const CUT_WITHIN_MS = 45_000
/** A client that reads on so soon after the cut finds the reason before the gateway closes the connection, 5 s after the cut. */
const REASON_SECS = 3

/** Bounds, in seconds, of the time for which a client had read nothing when it was cut off. */
export type Cut = { atLeast: number; atMost: number }

/** `inTime`: the clients that read on while the reason for their cut was still there to read. `received`: those that read the reason. */
export type Told = { inTime: number; received: number }

type Shape = { count: number; prompt: string }
type Opened = { readers: readonly NeverReader[]; openedAt: number; cutBefore: number }

/** Clients that never read, all on one gateway. Disposing of it closes their connections. */
export class Crowd implements Disposable {
  readonly #gateway: Member
  readonly #readers: readonly NeverReader[]
  readonly #openedAt: number
  readonly #cutBefore: number
  readonly #cuts: Cut[] = []
  #stalledAt = 0

  private constructor(gateway: Member, { readers, openedAt, cutBefore }: Opened) {
    this.#gateway = gateway
    this.#readers = readers
    this.#openedAt = openedAt
    this.#cutBefore = cutBefore
  }

  static async open(gateway: Member, { count, prompt }: Shape): Promise<Crowd> {
    const cutBefore = await sumCounter([gateway], 'slow_consumers')
    const openedAt = now()
    const { port, pathname } = new URL(gateway.url)
    const request = { port: Number(port), path: `${pathname}/agent/run`, body: JSON.stringify({ prompt }) }
    const readers = await Promise.all(Array.from({ length: count }, () => NeverReader.open(request)))
    return new Crowd(gateway, { readers, openedAt, cutBefore })
  }

  /** Time from opening the clients to the stall of all runs. */
  get stalledInSecs(): number {
    return (this.#stalledAt - this.#openedAt) / 1000
  }

  get stalledForSecs(): number {
    return (now() - this.#stalledAt) / 1000
  }

  /** Resolves when the gateway relays no more frames: the network buffers are full, and the runs wait for their readers. */
  async stalled(): Promise<void> {
    let relayed = -1
    let gone = 0
    let stillSince = now()
    const isStill = async () => {
      const count = await sumCounter([this.#gateway], 'frames_relayed')
      gone = await this.#countCut()
      if (count !== relayed) stillSince = now()
      relayed = count
      return now() - stillSince >= STILL_MS
    }
    const what = 'the runs of the never-reading clients to stall'
    const lastSeen = () => `${relayed} frames relayed, still rising; ${gone} clients were cut off before`
    await until(isStill, { what, withinMs: STALL_WITHIN_MS, everyMs: LOOK_EVERY_MS, lastSeen })
    this.#stalledAt = stillSince
  }

  /** Records the clients that were cut off since the last look. A look disturbs the gateway for milliseconds. */
  async lookForCuts(): Promise<void> {
    const gone = await this.#countCut()
    const cut = { atLeast: this.stalledForSecs, atMost: (now() - this.#openedAt) / 1000 }
    while (this.#cuts.length < Math.min(gone, this.#readers.length)) this.#cuts.push(cut)
  }

  /**
   * Waits until the clients are cut off. For each, the bounds are counted from when the last and the first client may have
   * stopped reading to the look that found it. A client that was not cut off in time has `Infinity`.
   */
  async cuts(): Promise<readonly Cut[]> {
    const deadline = this.#stalledAt + CUT_WITHIN_MS
    const missing = () => this.#readers.length - this.#cuts.length
    while (missing() > 0 && now() < deadline) {
      await sleep(LOOK_EVERY_MS)
      await this.lookForCuts()
    }
    const never = () => ({ atLeast: Number.POSITIVE_INFINITY, atMost: Number.POSITIVE_INFINITY })
    return [...this.#cuts, ...Array.from({ length: missing() }, never)]
  }

  /** Lets all clients, which were cut off at these times, read the rest. */
  async countTold(cuts: readonly Cut[]): Promise<Told> {
    const since = this.stalledForSecs - REASON_SECS
    const tails = await Promise.all(this.#readers.map((reader) => reader.readOn()))
    return {
      inTime: cuts.filter(({ atLeast }) => atLeast >= since).length,
      received: tails.filter((tail) => tail.includes('"code":"slow_consumer"')).length,
    }
  }

  async #countCut(): Promise<number> {
    return (await sumCounter([this.#gateway], 'slow_consumers')) - this.#cutBefore
  }

  [Symbol.dispose](): void {
    for (const reader of this.#readers) reader.leave()
  }
}

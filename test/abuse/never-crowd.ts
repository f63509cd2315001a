import { GATEWAY } from '../../scripts/bench/dialect.ts'
import { NeverReader } from '../../scripts/bench/never-reader.ts'
import { allOf, type Guarantee } from '../harness/guarantee.ts'
import { StallWatch } from './stall-watch.ts'

/** The network buffers hold about 4,000 KiB of it. */
const RUN_KIB = 16_384
const STALLED_AFTER_MS = 3_000
/** The limit is 30 s from the reader's last byte, which is earlier than the run's last event. */
const CUT_S = { min: 25, max: 32 }
const CUT_WITHIN_MS = 40_000

/** Clients that do not read from the start. Disposing of it closes their connections. */
export class NeverCrowd implements Disposable {
  readonly #readers: readonly NeverReader[]
  readonly #watch: StallWatch

  constructor(port: number, count: number) {
    const request = { port, path: GATEWAY.runPath, body: GATEWAY.body(`/pieces ${RUN_KIB}`) }
    this.#readers = Array.from({ length: count }, () => new NeverReader(request))
    this.#watch = new StallWatch(port)
  }

  /** Waits until no run produces events any more. Resolves with the number of runs that stopped before their end. */
  async stalled(): Promise<number> {
    const ids = await Promise.all(this.#readers.map(({ runId }) => runId))
    const events = await this.#watch.stalled(ids, STALLED_AFTER_MS)
    return events.filter((count) => count < RUN_KIB).length
  }

  /** Waits until all readers are cut off. Every second one then reads the rest, which must say why. */
  async cutOff(): Promise<Guarantee[]> {
    const over = new AbortController()
    const watching = this.#watch.run(over.signal)
    const cuts = await Promise.all(this.#readers.map((reader, i) => this.#awaitCut(reader, i % 2 === 0)))
    over.abort()
    await watching
    const times = cuts.map(({ stalledS }) => stalledS)
    const inTime = times.filter((s) => s >= CUT_S.min && s <= CUT_S.max).length
    const informed = cuts.filter(({ tail }) => tail?.includes('"code":"slow_consumer"')).length
    const count = this.#readers.length
    const detail = `of ${count}; ${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)} s after the run stalled`
    return [
      { ...allOf('never-reading clients cut off after 30 s', inTime, count), detail },
      allOf('those that read the rest received slow_consumer', informed, Math.ceil(count / 2)),
    ]
  }

  [Symbol.dispose](): void {
    for (const reader of this.#readers) reader.leave()
  }

  async #awaitCut(reader: NeverReader, readsOn: boolean): Promise<{ stalledS: number; tail?: string }> {
    const stalledMs = await this.#watch.released(await reader.runId, CUT_WITHIN_MS)
    if (stalledMs === undefined) return { stalledS: Number.POSITIVE_INFINITY }
    return { stalledS: stalledMs / 1000, ...(readsOn && { tail: await reader.readOn() }) }
  }
}

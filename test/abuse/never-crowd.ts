import type { Guarantee } from '../harness/guarantee.ts'
import { countOf } from '../harness/guarantees.ts'
import { NeverReader } from '../harness/never-reader.ts'
import { StallWatch } from './stall-watch.ts'

/** Of which the network takes some 4,000. */
const RUN_KIB = 16_384
const STANDS_AFTER_MS = 3_000
/** 30 s from the reader's last byte, which is some time before the run's last event. */
const CUT_S = { min: 25, max: 32 }
const GIVE_UP_MS = 40_000

/** Clients that never read, all of them from the start. Disposing of it lets them leave. */
export class NeverCrowd implements Disposable {
  readonly #readers: readonly NeverReader[]
  readonly #watch: StallWatch

  constructor(port: number, count: number) {
    this.#readers = Array.from({ length: count }, () => new NeverReader(port, RUN_KIB))
    this.#watch = new StallWatch(port)
  }

  /** Resolves when nothing moves any more; tells how many runs stand before their end. */
  async stand(): Promise<number> {
    const ids = await Promise.all(this.#readers.map(({ runId }) => runId))
    const events = await this.#watch.stand(ids, STANDS_AFTER_MS)
    return events.filter((count) => count < RUN_KIB).length
  }

  /** Every second reader reads on once it has been cut off, and learns why; the others never do. */
  async cutOff(): Promise<Guarantee[]> {
    const over = new AbortController()
    const watching = this.#watch.run(over.signal)
    const cuts = await Promise.all(this.#readers.map((reader, i) => this.#awaitCut(reader, i % 2 === 0)))
    over.abort()
    await watching
    const times = cuts.map(({ stoodS }) => stoodS)
    const inTime = times.filter((s) => s >= CUT_S.min && s <= CUT_S.max).length
    const told = cuts.filter(({ tail }) => tail?.includes('"code":"slow_consumer"')).length
    const count = this.#readers.length
    const detail = `of ${count}; ${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)} s after the run stood`
    return [
      { ...countOf('never-readers cut off after 30 s', inTime, count), detail },
      countOf('those that then read on were told slow_consumer', told, Math.ceil(count / 2)),
    ]
  }

  [Symbol.dispose](): void {
    for (const reader of this.#readers) reader.leave()
  }

  async #awaitCut(reader: NeverReader, readsOn: boolean): Promise<{ stoodS: number; tail?: string }> {
    const stoodMs = await this.#watch.letGo(await reader.runId, GIVE_UP_MS)
    if (stoodMs === undefined) return { stoodS: Number.POSITIVE_INFINITY }
    return { stoodS: stoodMs / 1000, ...(readsOn && { tail: await reader.readOn() }) }
  }
}

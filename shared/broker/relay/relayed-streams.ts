import type { CounterName, Metrics } from '../../metrics.ts'
import { LAST, RECORD, type ReceivedRecord, record, type WireRecord } from './records.ts'
import { RelayedStream, type RelayFailure } from './relayed-stream.ts'

export type StreamsDeps = {
  /** Sends to the worker of this epoch. */
  send(epoch: number, each: WireRecord): void
  lives(epoch: number): boolean
  isAway(): boolean
  metrics: Metrics
}

type OpenStream = { epoch: number; stream: RelayedStream }

/** The streams that this gateway has open, by the numbers that it has given them, and what comes for them. */
export class RelayedStreams {
  readonly #deps: StreamsDeps
  readonly #open = new Map<number, OpenStream>()
  #last = 0
  #onEmpty = () => {}

  constructor(deps: StreamsDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#open.size
  }

  /** A stream of a run of this worker, from after frame `after` on; it is open until somebody returns it. */
  open(epoch: number, after: number): { number: number; stream: RelayedStream } {
    const number = ++this.#last
    const { send, lives, isAway } = this.#deps
    const stream = new RelayedStream(after, {
      resend(seq) {
        if (isAway()) return false
        send(epoch, record(RECORD.resend, { stream: number, seq }))
        return true
      },
      taken: (seq) => send(epoch, record(RECORD.taken, { stream: number, seq })),
      closed: () => {
        this.#open.delete(number)
        if (this.#open.size === 0) this.#onEmpty()
        if (lives(epoch)) send(epoch, record(RECORD.detach, { stream: number }))
      },
      gap: (fate) => this.#deps.metrics.count(GAP_COUNTER[fate]),
      failed: (code) => {
        const counter = FAILURE_COUNTER[code]
        if (counter) this.#deps.metrics.count(counter)
      },
    })
    this.#open.set(number, { epoch, stream })
    return { number, stream }
  }

  /** Resolves when no stream is open any more, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    const timer = setTimeout(resolve, withinMs)
    await promise
    clearTimeout(timer)
  }

  onRecord(from: number, { type, stream: number, seq, count, flags, body }: ReceivedRecord): void {
    if (type === RECORD.beat) return this.#onBeat(from, body)
    const open = this.#open.get(number)
    if (open?.epoch !== from) return
    if (type === RECORD.gap) return open.stream.gone()
    if (type === RECORD.ask) return open.stream.tellTaken()
    if (type !== RECORD.frames) return
    const isTaken = open.stream.accept({ seq, count, body, isLast: (flags & LAST) > 0 })
    if (isTaken) this.#deps.metrics.count('frames_relayed', count)
  }

  /** Ends the streams of this worker, or of all, with a terminal frame behind what was received. */
  fail(code: RelayFailure, epoch?: number): void {
    for (const open of this.#open.values()) if (epoch === undefined || open.epoch === epoch) open.stream.fail(code)
  }

  /** A stream that a worker still sends and nobody here has open was left, and the word of it lost. */
  #onBeat(from: number, body: Buffer): void {
    for (let at = 0; at + 8 <= body.length; at += 8) {
      const number = body.readUInt32LE(at)
      const open = this.#open.get(number)
      if (open) open.stream.announced(body.readUInt32LE(at + 4))
      else this.#deps.send(from, record(RECORD.detach, { stream: number }))
    }
  }
}

const GAP_COUNTER = { asked: 'gaps_asked', repaired: 'gaps_repaired' } as const

const FAILURE_COUNTER: Partial<Record<RelayFailure, CounterName>> = {
  worker_lost: 'streams_lost',
  relay_unavailable: 'streams_lost',
  stream_gap: 'gaps_lost',
  slow_consumer: 'slow_consumers',
}

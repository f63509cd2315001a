import { LRUCache } from 'lru-cache'
import { within } from '../../../kernel/async/deadline.ts'
import type { CounterName, Metrics } from '../../../kernel/metrics.ts'
import type { OnBegun } from '../../following/waiting-runs.ts'
import type { Position } from '../../journal/frame-stream.ts'
import type { ReaderFailure } from '../../journal/frames.ts'
import {
  BEAT_BYTES,
  END_OF_FRAME,
  LAST,
  RECORD,
  type ReceivedRecord,
  record,
  type WireRecord,
} from '../wire/records.ts'
import { RelayedStream, type RelayedStreamHooks, type StreamLimits } from './relayed-stream.ts'

export type StreamsDeps = {
  /** Sends a record to the worker of this epoch. */
  send(epoch: number, each: WireRecord): void
  /** Sends a record with the next message, or after a short time. */
  sendLater(epoch: number, each: WireRecord): void
  isAlive(epoch: number): boolean
  isBusAway(): boolean
  metrics: Metrics
  limits?: StreamLimits
}

/** A stream that is not accepted belongs to a run that its worker has not confirmed: nothing is reported about it. */
type OpenStream = { epoch: number; stream: RelayedStream; isAccepted: boolean }

/** Above this number the oldest expected streams are forgotten; they are then opened like unexpected ones. */
const MAX_EXPECTED = 10_000

/**
 * The open streams of this gateway by stream number. The gateway chooses the number, the worker puts it into every record of
 * the stream.
 */
export class RelayedStreams {
  readonly #deps: StreamsDeps
  readonly #open = new Map<number, OpenStream>()
  /** The handlers of expected streams, by the streams' future numbers. */
  readonly #expected = new LRUCache<number, OnBegun>({ max: MAX_EXPECTED })
  #lastNumber = 0
  #onEmpty = () => {}

  constructor(deps: StreamsDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#open.size
  }

  /** Opens a stream that starts after frame `after` of a run of this worker. It stays open until its iteration has returned. */
  open(epoch: number, after: number): { number: number; stream: RelayedStream } {
    return this.#openStream(++this.#lastNumber, { epoch, after, isAccepted: true })
  }

  /** Returns the number of a stream that an executor will send without a request. */
  expect(onBegun: OnBegun): number {
    const number = ++this.#lastNumber
    this.#expected.set(number, onBegun)
    return number
  }

  /** Opens the stream of a new run. The run does not act before `accept`. */
  openNew(epoch: number): { number: number; stream: RelayedStream } {
    return this.#openStream(++this.#lastNumber, { epoch, after: 0, isAccepted: false })
  }

  /** Called when the worker has confirmed the new run, so that its client gets it. */
  accept(number: number): void {
    const open = this.#open.get(number)
    if (!open) return
    open.isAccepted = true
    open.stream.reportRead()
  }

  #openStream(
    number: number,
    { epoch, after, isAccepted }: Omit<OpenStream, 'stream'> & { after: number },
  ): { number: number; stream: RelayedStream } {
    const { send, isBusAway, metrics, limits } = this.#deps
    const hooks: RelayedStreamHooks = {
      requestResend({ seq, pieces }) {
        if (isBusAway()) return false
        send(epoch, record(RECORD.resend, { stream: number, seq, count: pieces }))
        return true
      },
      onRead: ({ seq, pieces }) => send(epoch, record(RECORD.readPosition, { stream: number, seq, count: pieces })),
      onGap: (state) => metrics.count(GAP_COUNTER[state]),
      onFailed(code) {
        const counter = FAILURE_COUNTER[code]
        if (counter) metrics.count(counter)
      },
      onClosed: () => this.#remove(number, epoch),
    }
    const stream = new RelayedStream(after, hooks, limits)
    this.#open.set(number, { epoch, stream, isAccepted })
    return { number, stream }
  }

  /** Resolves when no stream is open any more, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    await within(withinMs, promise)
  }

  /** Handles a record from the worker of epoch `from`. Records for another worker's stream are ignored. */
  onRecord(from: number, received: ReceivedRecord): void {
    const { type, stream: number, seq, count, flags, body } = received
    if (type === RECORD.beat) return this.#onBeat(from, body)
    const open = this.#openOf(from, number)
    if (!open) return
    if (type === RECORD.gap) return open.stream.onGone()
    if (type === RECORD.askReadPosition) return open.isAccepted ? open.stream.reportRead() : undefined
    if (type !== RECORD.frames && type !== RECORD.piece) return
    const isLast = (flags & LAST) > 0
    if (type === RECORD.frames && count === 0 && isLast) return open.stream.onEnded(seq - 1)
    const { from: start, to } = spanOf(received)
    const isAccepted = open.stream.accept({ from: start, to, body, isLast })
    if (isAccepted) this.#deps.metrics.count('frames_relayed', to.seq - start.seq)
  }

  /** Ends the streams of this worker, or with `epoch` left out all streams, after the frames accepted so far. Returns how many. */
  fail(code: ReaderFailure, epoch?: number): number {
    const failing = [...this.#open.values()].filter((open) => epoch === undefined || open.epoch === epoch)
    for (const { stream } of failing) stream.fail(code)
    return failing.length
  }

  /** The stream of this number, if the process of epoch `from` sends it. An executor that is not known yet cannot be answered: it is looked up. */
  #openOf(from: number, number: number): OpenStream | undefined {
    const onBegun = this.#deps.isAlive(from) ? this.#expected.get(number) : undefined
    if (onBegun) {
      this.#expected.delete(number)
      onBegun(from, () => this.#openStream(number, { epoch: from, after: 0, isAccepted: true }).stream)
      if (!this.#open.has(number)) this.#deps.sendLater(from, record(RECORD.detach, { stream: number }))
    }
    const open = this.#open.get(number)
    return open?.epoch === from ? open : undefined
  }

  #remove(number: number, epoch: number): void {
    this.#open.delete(number)
    if (this.#open.size === 0) this.#onEmpty()
    if (this.#deps.isAlive(epoch)) this.#deps.sendLater(epoch, record(RECORD.detach, { stream: number }))
  }

  /** Handles a heartbeat: streams and their last frames. A stream that is not open here was closed; its `detach` was lost. */
  #onBeat(from: number, body: Buffer): void {
    for (let at = 0; at + BEAT_BYTES <= body.length; at += BEAT_BYTES) {
      const number = body.readUInt32LE(at)
      const open = this.#openOf(from, number)
      if (open) open.stream.onBeat({ seq: body.readUInt32LE(at + 4), pieces: body.readUInt32LE(at + 8) })
      else if (this.#deps.isAlive(from)) this.#deps.send(from, record(RECORD.detach, { stream: number }))
    }
  }
}

/** The positions before and after the frames or the piece of a record. */
function spanOf({ type, seq, count, flags }: ReceivedRecord): { from: Position; to: Position } {
  if (type === RECORD.frames) return { from: { seq: seq - 1, pieces: 0 }, to: { seq: seq + count - 1, pieces: 0 } }
  const isEnd = (flags & END_OF_FRAME) > 0
  const to = isEnd ? { seq, pieces: 0 } : { seq: seq - 1, pieces: count + 1 }
  return { from: { seq: seq - 1, pieces: count }, to }
}

const GAP_COUNTER = { asked: 'gaps_asked', repaired: 'gaps_repaired' } as const

const FAILURE_COUNTER: Partial<Record<ReaderFailure, CounterName>> = {
  worker_lost: 'streams_lost',
  relay_unavailable: 'streams_lost',
  stream_gap: 'gaps_lost',
  slow_consumer: 'slow_consumers',
}

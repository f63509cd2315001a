import type { FrameCursor, Frames, Position } from '../../journal/frame-stream.ts'
import { BEAT_BYTES, END_OF_FRAME, LAST, packMessage, RECORD, record, sizeOf, type WireRecord } from './records.ts'

export type OutboxOptions = {
  /** The sending process's epoch, which each message begins with. */
  epoch: number
  /** Publishes on the receiver's channel. Resolves with the number of subscribers; rejects while the bus is away. */
  publish(message: Buffer): Promise<number>
  /** Whether frames and heartbeats may be sent: if not, another process may own the runs by now. Calls and replies are always sent. */
  canSendFrames(): boolean
  /** Called after each message with the number of subscribers that got it. */
  onPublished(subscribers: number): void
  /** Above this many bytes sent and not acknowledged, no frames are sent (`shared/cluster/README.md` "Credit and backpressure"). */
  creditBytes(): number
  maxMessageBytes?: number
}

const MAX_MESSAGE_BYTES = 256 * 1024
/** How long a record that is not urgent waits for the next message. */
const WAIT_MS = 50

/**
 * Sends all messages from this process to another. One message is in flight at a time; records that are added meanwhile are sent
 * together in the next one. So an idle process sends an event at once and a loaded one packs thousands into a message, without a
 * timer. Frames are taken from their cursors only when a message is packed; frames that the bus loses are still in the journal.
 */
export class Outbox {
  readonly #epoch: number
  readonly #publish: OutboxOptions['publish']
  readonly #canSendFrames: OutboxOptions['canSendFrames']
  readonly #onPublished: OutboxOptions['onPublished']
  readonly #creditBytes: OutboxOptions['creditBytes']
  readonly #maxMessageBytes: number
  readonly #streams = new Map<number, FrameCursor>()
  /** For each stream of a new run that its receiver has not accepted yet. */
  readonly #unaccepted = new Map<number, () => void>()
  /** Numbers of the streams that may have frames to send, in the order of their turns. */
  readonly #dirty = new Set<number>()
  #records: WireRecord[] = []
  #sentBytes = 0
  #acknowledgedBytes = 0
  #isSending = false
  #isFlushScheduled = false
  #waiting: NodeJS.Timeout | undefined

  constructor(options: OutboxOptions) {
    this.#epoch = options.epoch
    this.#publish = options.publish
    this.#canSendFrames = options.canSendFrames
    this.#onPublished = options.onPublished
    this.#creditBytes = options.creditBytes
    this.#maxMessageBytes = options.maxMessageBytes ?? MAX_MESSAGE_BYTES
  }

  get streamCount(): number {
    return this.#streams.size
  }

  /** Whether a message is in flight, a record is queued or a stream is attached (a receiver that has all frames detaches it). */
  get isBusy(): boolean {
    return this.#isSending || this.#records.length > 0 || this.#streams.size > 0
  }

  /** Queues a record. Records are sent in order and before frames; those of the same event-loop turn go into one message. */
  send(each: WireRecord): void {
    this.#records.push(each)
    this.#scheduleFlush()
  }

  /** Queues a record for the next message, which is sent after 50 ms at the latest. */
  sendLater(each: WireRecord): void {
    this.#records.push(each)
    if (!this.#waiting) this.#waiting = setTimeout(() => this.#flush(), WAIT_MS).unref()
  }

  /**
   * Sends the frames of the cursor, present and future, under the receiver's stream number until the stream is detached. The first ones
   * go with the records of the same event-loop turn, such as the reply to the call that started the run. `onAccepted` is called when the
   * receiver reports a read position for the first time.
   */
  attach(stream: number, cursor: FrameCursor, onAccepted?: () => void): void {
    this.detach(stream)
    this.#streams.set(stream, cursor)
    if (onAccepted) this.#unaccepted.set(stream, onAccepted)
    cursor.confirmRead(positionOf(cursor))
    cursor.subscribe(() => this.#markDirty(stream))
    this.#dirty.add(stream)
    this.#scheduleFlush()
  }

  /** Sends everything after this position again. When the stream is not attached, a `gap` record is sent instead. */
  resend(stream: number, position: Position): void {
    const cursor = this.#streams.get(stream)
    if (!cursor) return this.send(record(RECORD.gap, { stream }))
    cursor.seek(position) // The cursor's listener then marks the stream.
  }

  /** Sets the read position of the stream's client. */
  confirmRead(stream: number, position: Position): void {
    this.#streams.get(stream)?.confirmRead(position)
    this.#unaccepted.get(stream)?.()
    this.#unaccepted.delete(stream)
  }

  detach(stream: number): void {
    this.#streams.get(stream)?.close()
    this.#streams.delete(stream)
    this.#unaccepted.delete(stream)
    this.#dirty.delete(stream)
  }

  /** Restores credit: the receiver has everything up to this position. */
  acknowledge(position: number): void {
    this.#acknowledgedBytes = Math.max(this.#acknowledgedBytes, position)
    this.#flush()
  }

  /** Sends queued records and frames. Called when `canSendFrames` may have become `true`. */
  resume(): void {
    this.#flush()
  }

  /**
   * Sends the heartbeat: for each stream the position up to which frames were packed, so the receiver notices when the latest frames were
   * lost. The end of a run is repeated until its stream is detached. For a run that waits for its reader, or to be accepted, it also asks
   * for the read position, because the report of it may have been lost.
   */
  sendBeat(): void {
    if (this.#streams.size === 0 || !this.#canSendFrames()) return this.#flush()
    const body = Buffer.allocUnsafe(this.#streams.size * BEAT_BYTES)
    let at = 0
    for (const [stream, { seq, pieces, isTooFarBehind, state }] of this.#streams) {
      if (state === 'ended') this.#dirty.add(stream)
      if (isTooFarBehind || this.#unaccepted.has(stream)) this.send(record(RECORD.askReadPosition, { stream }))
      body.writeUInt32LE(stream, at)
      body.writeUInt32LE(seq, at + 4)
      at = body.writeUInt32LE(pieces, at + 8)
    }
    this.send(record(RECORD.beat, { body }))
  }

  /** Detaches all streams and discards queued records. Called when the receiver has left or crashed. */
  close(): void {
    for (const stream of [...this.#streams.keys()]) this.detach(stream)
    this.#records = []
    clearTimeout(this.#waiting)
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    setImmediate(() => {
      this.#isFlushScheduled = false
      this.#flush()
    })
  }

  #markDirty(stream: number): void {
    this.#dirty.add(stream)
    this.#flush()
  }

  #flush(): void {
    if (this.#isSending) return
    const records = this.#gather()
    if (records.length === 0) return
    this.#isSending = true
    this.#publishTogether(records).then(
      (subscribers) => {
        this.#isSending = false
        this.#onPublished(subscribers)
        this.#flush()
      },
      () => {
        // The bus is away, or a record did not fit. The next heartbeat tries again; the receiver requests missing frames.
        this.#isSending = false
      },
    )
  }

  /** Also rejects when a number in a record does not fit into a message: such a record must not end the process. */
  async #publishTogether(records: readonly WireRecord[]): Promise<number> {
    const message = packMessage(this.#epoch, this.#sentBytes, records)
    this.#sentBytes += message.length
    return this.#publish(message)
  }

  /** Takes what the next message carries: all queued records, then frames until the message is full or the credit is used. */
  #gather(): WireRecord[] {
    const records = this.#records
    this.#records = []
    clearTimeout(this.#waiting)
    this.#waiting = undefined
    let bytes = records.reduce((sum, each) => sum + sizeOf(each), 0)
    if (this.#dirty.size === 0 || !this.#canSendFrames()) return records
    for (const stream of this.#dirty) {
      if (bytes >= this.#maxMessageBytes) break
      if (this.#sentBytes + bytes - this.#acknowledgedBytes > this.#creditBytes()) break
      const frames = this.#takeFrames(stream)
      if (!frames) continue
      records.push(frames)
      bytes += sizeOf(frames)
    }
    return records
  }

  #takeFrames(stream: number): WireRecord | undefined {
    this.#dirty.delete(stream)
    const cursor = this.#streams.get(stream)
    if (!cursor || stateOf(cursor) === 'waiting') return undefined
    const before = positionOf(cursor)
    if (stateOf(cursor) === 'ended') return record(RECORD.frames, { stream, seq: before.seq + 1, flags: LAST })
    const frames = cursor.take()
    if (!frames) {
      this.detach(stream)
      return record(RECORD.gap, { stream })
    }
    const state = stateOf(cursor)
    if (state === 'ready') this.#dirty.add(stream) // The rest of this stream is packed after the other streams' frames.
    const flags = state === 'ended' ? LAST : 0
    return recordOf(stream, before, { ...frames, flags })
  }
}

const positionOf = ({ seq, pieces }: FrameCursor): Position => ({ seq, pieces })

function recordOf(stream: number, before: Position, { text, lastSeq, pieces, flags }: Frames & { flags: number }) {
  const place = { stream, seq: before.seq + 1, body: text }
  if (pieces !== undefined) return record(RECORD.piece, { ...place, count: before.pieces, flags })
  if (before.pieces > 0) return record(RECORD.piece, { ...place, count: before.pieces, flags: flags | END_OF_FRAME })
  return record(RECORD.frames, { ...place, count: lastSeq - before.seq, flags })
}

/** Reads the state again; without this function the compiler would assume that it has not changed since the last comparison. */
const stateOf = (cursor: FrameCursor): FrameCursor['state'] => cursor.state

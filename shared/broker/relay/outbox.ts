import type { FrameCursor } from '../port.ts'
import { LAST, packMessage, RECORD, record, sizeOf, type WireRecord } from './records.ts'

export type OutboxLimits = {
  maxMessageBytes: number
  /** Above this many bytes sent and not acknowledged, no frames are sent (`shared/broker/README.md` "Credit and backpressure"). */
  maxUnacknowledgedBytes: number
}

export type OutboxOptions = {
  /** The sending process's epoch, which stands at the head of each message. */
  epoch: number
  /** Publishes to the receiver's channel. Resolves with the number of subscribers that got it; rejects when Redis is unreachable. */
  publish(message: Buffer): Promise<number>
  /** While `false`, no frames and no heartbeat are sent: another process may own the runs by now. Calls and replies are still sent. */
  canSendFrames(): boolean
  /** Called after each message with the number of subscribers that got it. */
  onPublished(subscribers: number): void
  limits?: OutboxLimits
}

const OUTBOX_LIMITS: OutboxLimits = { maxMessageBytes: 256 * 1024, maxUnacknowledgedBytes: 4 * 1024 * 1024 }

/**
 * Sends everything that one process has for another. One message is in flight at a time; records that come meanwhile are sent
 * together in the next one. So an idle process sends an event at once and a loaded one packs thousands into a message, without a
 * timer. Frames are taken from their cursors only when a message is packed; frames that Redis loses are still in the journal.
 */
export class Outbox {
  readonly #epoch: number
  readonly #publish: OutboxOptions['publish']
  readonly #canSendFrames: OutboxOptions['canSendFrames']
  readonly #onPublished: OutboxOptions['onPublished']
  readonly #limits: OutboxLimits
  readonly #streams = new Map<number, FrameCursor>()
  readonly #dirty = new Set<number>()
  #records: WireRecord[] = []
  #sentBytes = 0
  #acknowledgedBytes = 0
  #isSending = false
  #isFlushScheduled = false

  constructor({ epoch, publish, canSendFrames, onPublished, limits = OUTBOX_LIMITS }: OutboxOptions) {
    this.#epoch = epoch
    this.#publish = publish
    this.#canSendFrames = canSendFrames
    this.#onPublished = onPublished
    this.#limits = limits
  }

  get streamCount(): number {
    return this.#streams.size
  }

  /** `true` while a message is in flight, a record waits or a stream is attached. The receiver detaches a stream when it has all frames. */
  get isBusy(): boolean {
    return this.#isSending || this.#records.length > 0 || this.#streams.size > 0
  }

  /** Queues a record. It is sent after the records queued before and ahead of any frames; one message takes all of a loop turn. */
  send(each: WireRecord): void {
    this.#records.push(each)
    this.#scheduleFlush()
  }

  /** Sends the frames of the cursor, present and future, under the receiver's stream number until the stream is detached. */
  attach(stream: number, cursor: FrameCursor): void {
    this.detach(stream)
    this.#streams.set(stream, cursor)
    cursor.confirmRead(cursor.seq)
    cursor.subscribe(() => this.#markDirty(stream))
    this.#markDirty(stream)
  }

  /** Sends the frames after number `seq` again. When the stream is not attached, a `gap` record is sent instead. */
  resend(stream: number, seq: number): void {
    const cursor = this.#streams.get(stream)
    if (!cursor) return this.send(record(RECORD.gap, { stream }))
    cursor.seek(seq)
    this.#markDirty(stream)
  }

  /** Sets the read position of the stream's client. */
  confirmRead(stream: number, seq: number): void {
    this.#streams.get(stream)?.confirmRead(seq)
  }

  detach(stream: number): void {
    this.#streams.get(stream)?.close()
    this.#streams.delete(stream)
    this.#dirty.delete(stream)
  }

  /** The receiver has received everything up to this position. */
  acknowledge(position: number): void {
    this.#acknowledgedBytes = Math.max(this.#acknowledgedBytes, position)
    this.#flush()
  }

  /** Sends what waits. Called when `canSendFrames` may have become `true`. */
  resume(): void {
    this.#flush()
  }

  /**
   * Sends the heartbeat: for each stream the number of the last frame packed, so the receiver notices when the latest frames were
   * lost. For a run that waits for its reader it also asks for the read position, because the report of it may have been lost.
   */
  sendBeat(): void {
    if (this.#streams.size === 0 || !this.#canSendFrames()) return this.#flush()
    const body = Buffer.allocUnsafe(this.#streams.size * 8)
    let at = 0
    for (const [stream, { seq, isTooFarBehind }] of this.#streams) {
      if (isTooFarBehind) this.send(record(RECORD.askReadPosition, { stream }))
      body.writeUInt32LE(stream, at)
      at = body.writeUInt32LE(seq, at + 4)
    }
    this.send(record(RECORD.beat, { body }))
  }

  /** Detaches all streams and discards queued records. Called when the receiver has left or crashed. */
  close(): void {
    for (const stream of [...this.#streams.keys()]) this.detach(stream)
    this.#records = []
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
    const message = packMessage(this.#epoch, this.#sentBytes, records)
    this.#sentBytes += message.length
    this.#publish(message).then(
      (listeners) => {
        this.#isSending = false
        this.#onPublished(listeners)
        this.#flush()
      },
      () => {
        // Redis is unreachable. The next heartbeat sends again; the receiver requests the frames that it misses.
        this.#isSending = false
      },
    )
  }

  /** Takes the records of the next message: all that wait, then frames as far as the message, credit and fence allow. */
  #gather(): WireRecord[] {
    const records = this.#records
    this.#records = []
    let bytes = records.reduce((sum, each) => sum + sizeOf(each), 0)
    if (this.#dirty.size === 0 || !this.#canSendFrames()) return records
    for (const stream of this.#dirty) {
      if (bytes >= this.#limits.maxMessageBytes) break
      if (this.#sentBytes + bytes - this.#acknowledgedBytes > this.#limits.maxUnacknowledgedBytes) break
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
    if (!cursor || stateOf(cursor) !== 'ready') return undefined
    const before = cursor.seq
    const frames = cursor.take()
    if (!frames) {
      this.detach(stream)
      return record(RECORD.gap, { stream })
    }
    const { text, lastSeq } = frames
    const state = stateOf(cursor)
    if (state === 'ready') this.#dirty.add(stream) // The rest is packed after the other streams' frames.
    const flags = state === 'ended' ? LAST : 0
    return record(RECORD.frames, { stream, seq: before + 1, count: lastSeq - before, flags, body: text })
  }
}

/** Reads the state anew, where the compiler would assume that it has not changed since the last comparison. */
const stateOf = (cursor: FrameCursor): FrameCursor['state'] => cursor.state

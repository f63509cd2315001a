import type { FrameCursor } from '../port.ts'
import { LAST, packMessage, RECORD, record, sizeOf, type WireRecord } from './records.ts'

export type OutboxLimits = {
  maxMessageBytes: number
  /** Frames sent and not yet acknowledged: above it streams wait (design §4.4). */
  maxUnackedBytes: number
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

const OUTBOX_LIMITS: OutboxLimits = { maxMessageBytes: 256 * 1024, maxUnackedBytes: 4 * 1024 * 1024 }

/**
 * Everything one process sends another. Self-clocked: what gathers while one message is on its way goes with the next, so an
 * idle process sends an event at once and a loaded one thousands together, without a timer (design §4.2). Frames are taken
 * from their cursors only when they are packed: what Redis loses is in the journal still.
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
  #sent = 0
  #acked = 0
  #isSending = false
  #isFlushSoon = false

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

  /** Is something under way, or waiting to be? A stream is until its receiver, who has all of it then, has detached it. */
  get isBusy(): boolean {
    return this.#isSending || this.#records.length > 0 || this.#streams.size > 0
  }

  /** Sends a record behind what waits already, and before any frames: with those of the same loop turn, in one message. */
  send(each: WireRecord): void {
    this.#records.push(each)
    this.#flushSoon()
  }

  /** Sends what the cursor has and will have, under the receiver's number for it, until it ends or is detached. */
  attach(stream: number, cursor: FrameCursor): void {
    this.detach(stream)
    this.#streams.set(stream, cursor)
    cursor.confirmRead(cursor.seq)
    cursor.subscribe(() => this.#markDirty(stream))
    this.#markDirty(stream)
  }

  /** Sends on from after frame `seq`. Of a stream that is not attached the receiver is told that it is gone. */
  resend(stream: number, seq: number): void {
    const cursor = this.#streams.get(stream)
    if (!cursor) return this.send(record(RECORD.gap, { stream }))
    cursor.seek(seq)
    this.#markDirty(stream)
  }

  /** The stream's reader has everything up to frame `seq`. */
  taken(stream: number, seq: number): void {
    this.#streams.get(stream)?.confirmRead(seq)
  }

  detach(stream: number): void {
    this.#streams.get(stream)?.close()
    this.#streams.delete(stream)
    this.#dirty.delete(stream)
  }

  /** The receiver has got everything up to this position. */
  acked(position: number): void {
    this.#acked = Math.max(this.#acked, position)
    this.#flush()
  }

  /** Frames may flow again. */
  resume(): void {
    this.#flush()
  }

  /**
   * The heartbeat: for each stream the last frame that was packed, so that a loss at the very end shows. Where a run waits for
   * its reader, the word that it has read on may have been lost.
   */
  beat(): void {
    if (this.#streams.size === 0 || !this.#canSendFrames()) return this.#flush()
    const body = Buffer.allocUnsafe(this.#streams.size * 8)
    let at = 0
    for (const [stream, { seq, isTooFarBehind }] of this.#streams) {
      if (isTooFarBehind) this.send(record(RECORD.ask, { stream }))
      body.writeUInt32LE(stream, at)
      at = body.writeUInt32LE(seq, at + 4)
    }
    this.send(record(RECORD.beat, { body }))
  }

  /** The receiver is gone: its streams have no reader any more. */
  close(): void {
    for (const stream of [...this.#streams.keys()]) this.detach(stream)
    this.#records = []
  }

  #flushSoon(): void {
    if (this.#isFlushSoon) return
    this.#isFlushSoon = true
    setImmediate(() => {
      this.#isFlushSoon = false
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
    const message = packMessage(this.#epoch, this.#sent, records)
    this.#sent += message.length
    this.#publish(message).then(
      (listeners) => {
        this.#isSending = false
        this.#onPublished(listeners)
        this.#flush()
      },
      () => {
        // Redis is away. The next heartbeat tries again; what was in this message is asked for again by whoever misses it.
        this.#isSending = false
      },
    )
  }

  #gather(): WireRecord[] {
    const records = this.#records
    this.#records = []
    let bytes = records.reduce((sum, each) => sum + sizeOf(each), 0)
    if (this.#dirty.size === 0 || !this.#canSendFrames()) return records
    for (const stream of this.#dirty) {
      if (bytes >= this.#limits.maxMessageBytes) break
      if (this.#sent + bytes - this.#acked > this.#limits.maxUnackedBytes) break
      const frames = this.#framesOf(stream)
      if (!frames) continue
      records.push(frames)
      bytes += sizeOf(frames)
    }
    return records
  }

  #framesOf(stream: number): WireRecord | undefined {
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
    if (state === 'ready') this.#dirty.add(stream) // The rest is packed after everybody else's turn.
    const flags = state === 'ended' ? LAST : 0
    return record(RECORD.frames, { stream, seq: before + 1, count: lastSeq - before, flags, body: text })
  }
}

/** A cursor's state is another after each step. */
const stateOf = (cursor: FrameCursor): FrameCursor['state'] => cursor.state

import { LATER, PullIterator } from '../../../kernel/async/pull-iterator.ts'
import type { Frames, Position } from '../../journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../../journal/frames.ts'
import { Backlog, type BacklogLimits, type ReceivedFrames } from './backlog.ts'
import { type GapLimits, GapRepair, type GapRepairHooks } from './gap-repair.ts'

export type RelayedStreamHooks = {
  /** Asks the worker to send again from this position. Returns `false` when the worker cannot be asked now. */
  requestResend(position: Position): boolean
  /** Called with the client's read position. */
  onRead(position: Position): void
  onGap: GapRepairHooks['onGap']
  /** Called when the stream ends with this failure. */
  onFailed(code: ReaderFailure): void
  /** Called once, when the reader has left or has reached the end. */
  onClosed(): void
}

export type StreamLimits = BacklogLimits & GapLimits

/** With `maxHeldBytes` and what its connection needs, a client that does not read costs less than 256 KiB. */
export const STREAM_LIMITS: StreamLimits = {
  maxHeldBytes: 96 * 1024,
  burstMs: 500,
  askAgainMs: 400,
  maxAskAgainMs: 3_200,
}

/** The read position is reported after this many events or bytes, long before the worker's journal would wait for it (`JOURNAL_LIMITS`). */
const REPORT_EVENTS = 512
const REPORT_BYTES = 24 * 1024

/**
 * The gateway's end of one run's stream. It yields every frame once and in order: it accepts only the frame that follows the last
 * one, has missing frames sent again (`GapRepair`), and holds what the client has not read within bounds (`Backlog`). Frames
 * that arrive in one event-loop turn are yielded together. See `shared/cluster/README.md` "Gap repair".
 */
export class RelayedStream extends PullIterator<Frames> {
  readonly #hooks: RelayedStreamHooks
  readonly #backlog: Backlog
  readonly #repair: GapRepair
  #read: Position
  #reportedSeq: number
  #unreportedBytes = 0
  /** The reader has taken everything and waits for more. */
  #isAwaited = false
  #hasAccepted = false
  #failure: ReaderFailure | undefined
  #hasSentFailure = false
  #isSessionKept = false
  #isWakeScheduled = false
  #onLast: ((last: Frames) => void) | undefined

  constructor(seq: number, hooks: RelayedStreamHooks, limits: StreamLimits = STREAM_LIMITS) {
    super()
    this.#hooks = hooks
    this.#read = { seq, pieces: 0 }
    this.#reportedSeq = seq
    this.#backlog = new Backlog(seq, limits)
    this.#repair = new GapRepair(
      {
        request: () => hooks.requestResend(this.#position),
        onGap: hooks.onGap,
      },
      limits,
    )
  }

  /** Number of the last frame accepted. */
  get seq(): number {
    return this.#position.seq
  }

  /**
   * Handles the worker's answer that the stream begins after frame `seq`: the run has no frame with the number that the client
   * named (D4.5c). Ignored when frames were accepted before the answer came.
   */
  startAfter(seq: number): void {
    if (this.#isOver || this.#hasAccepted || seq >= this.seq) return
    this.#backlog.restartAfter(seq)
    this.#read = { seq, pieces: 0 }
    this.#reportedSeq = seq
  }

  /** Notes that the run belongs to a message whose session outlives its worker (D32). */
  keepSession(): void {
    this.#isSessionKept = true
  }

  /** Receives frames. Returns whether they were accepted. */
  accept(frames: ReceivedFrames): boolean {
    if (this.#isOver || !isBehind(this.#position, frames.to)) return false
    if (isBehind(this.#position, frames.from) || isBehind(frames.from, this.#position)) {
      this.#repairLoss()
      return false
    }
    if (!this.#backlog.add(frames, this.#isAwaited)) return false
    this.#hasAccepted = true
    this.#repair.filled()
    this.#scheduleWake()
    return true
  }

  /** Handles a heartbeat: the worker has sent everything up to this position. Detects a loss after which no frame comes. */
  onBeat(position: Position): void {
    if (isBehind(this.#position, position) && !this.#isOver) this.#repairLoss()
  }

  /** Handles the message that the run has ended with frame `seq`. */
  onEnded(seq: number): void {
    if (this.#isOver) return
    if (seq > this.seq) return this.#repairLoss()
    this.#backlog.end()
    this.#repair.filled()
    this.#scheduleWake()
  }

  /** Handles the worker's answer that it no longer has the next frame. */
  onGone(): void {
    const isSlow = this.#backlog.isDropping || this.#repair.cause === 'dropped'
    this.fail(isSlow ? 'slow_consumer' : 'stream_gap')
  }

  /** Reports the client's read position to the worker. */
  reportRead(): void {
    this.#reportedSeq = this.#read.seq
    this.#unreportedBytes = 0
    this.#hooks.onRead(this.#read)
  }

  /** Ends the stream with a terminal frame of the gateway's own, after the frames accepted so far. */
  fail(code: ReaderFailure): void {
    if (this.#isOver) return
    this.#failure = code
    this.#repair.stop()
    this.#backlog.keepAll() // Frames dropped now could not be requested again.
    this.#hooks.onFailed(code)
    this.#scheduleWake()
  }

  onLast(listener: (last: Frames) => void): void {
    this.#onLast = listener
  }

  protected override pull(): Frames | undefined | typeof LATER {
    if (!this.#backlog.isEmpty) return this.#take()
    if (this.#isOver) return this.#takeFailure()
    if (this.#backlog.isDropping) this.#requestDropped()
    this.#isAwaited = true
    return LATER
  }

  protected override stop(): void {
    this.#repair.stop()
    this.#backlog.clear()
    this.#scheduleWake()
    this.#hooks.onClosed()
  }

  get #position(): Position {
    return this.#backlog.position
  }

  /** Whether no more frames are accepted; the frames in the backlog are still yielded. */
  get #isOver(): boolean {
    return this.#backlog.hasLast || this.isStopped || this.#failure !== undefined
  }

  /** While the backlog drops frames, gaps are expected: they are requested when the reader has taken the rest. */
  #repairLoss(): void {
    if (!this.#backlog.isDropping) this.#repair.start('lost')
  }

  #requestDropped(): void {
    this.#backlog.reopen()
    this.#repair.start('dropped')
  }

  #take(): Frames {
    this.#isAwaited = false
    const frames = this.#backlog.take()
    const { lastSeq: seq, pieces = 0 } = frames
    const isLargeEnd = this.#read.pieces > 0 && pieces === 0 // Reported at once, because the run waits until its large event was read.
    this.#read = { seq, pieces }
    this.#unreportedBytes += frames.text.length
    const events = seq - this.#reportedSeq
    if (isLargeEnd || events >= REPORT_EVENTS || this.#unreportedBytes >= REPORT_BYTES) this.reportRead()
    if (this.#backlog.hasLast && this.#backlog.isEmpty) this.#onLast?.(frames)
    return frames
  }

  /** The terminal frame of a stream that has failed, once. */
  #takeFailure(): Frames | undefined {
    if (this.#failure === undefined || this.#hasSentFailure || this.isStopped) return undefined
    this.#hasSentFailure = true
    const last = failureFrame(this.seq, this.#failure, { isSessionKept: this.#isSessionKept })
    this.#onLast?.(last)
    return last
  }

  /** Wakes the waiting reader after this event-loop turn, so that it takes all frames of the turn together. */
  #scheduleWake(): void {
    if (this.#isWakeScheduled) return
    this.#isWakeScheduled = true
    setImmediate(() => {
      this.#isWakeScheduled = false
      this.wake()
    })
  }
}

const isBehind = (one: Position, other: Position): boolean =>
  one.seq < other.seq || (one.seq === other.seq && one.pieces < other.pieces)

import { renderReaderFailure } from '../journal/frames.ts'
import type { Frames } from '../port.ts'

export type RelayedStreamHooks = {
  /** Asks the run's worker to send on from after frame `seq`; `false` when nobody can be asked now, which stops the clock. */
  resend(seq: number): boolean
  /** The reader has everything up to `seq`: the run may go on. */
  taken?(seq: number): void
  /** Nobody reads this stream any more. */
  closed(): void
  /** A hole was found, or is no more. */
  gap?(fate: 'asked' | 'repaired'): void
  /** The stream ends with this. */
  failed?(code: RelayFailure): void
}

export type RelayLimits = {
  /**
   * What a reader that does not read may cost here: half of it in a write that is not taken, half waiting behind that. Up to
   * all of it may wait for `burstMs`; what is beyond is dropped and asked for again (design §4.4).
   */
  maxHeldBytes: number
  burstMs: number
  /** How long a hole may stay open (T_gap), and how often it is asked for. */
  gapMs: number
  askAgainMs: number
}

/** With what else stands for its connection a slow reader costs 256 KiB. */
export const RELAY_LIMITS: RelayLimits = { maxHeldBytes: 192 * 1024, burstMs: 500, gapMs: 2_000, askAgainMs: 400 }

/** The run's worker is told so often how far the reader is: well before it would wait for the word (journal.ts). */
const TELL_EVENTS = 512
const TELL_BYTES = 48 * 1024

/** Frames that the reader has not taken yet, up to and including number `lastSeq`. */
type Pending = { text: Buffer; lastSeq: number }

/** How a stream ends that is not its run's end. */
export type RelayFailure = Parameters<typeof renderReaderFailure>[1]

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * The gateway's end of a stream. It hands on only frame `last + 1` (design §4.3): whatever is missing, dropped by Redis or by
 * this reader's slowness, is asked for again; what comes twice is passed over. Frames of one loop turn are handed on together.
 */
export class RelayedStream implements AsyncIterableIterator<Frames> {
  readonly #hooks: RelayedStreamHooks
  readonly #limits: RelayLimits
  #seq: number
  #pending: Pending[] = []
  #pendingBytes = 0
  /** The reader has taken all that there was, and waits. */
  #isAwaited = false
  #takenSeq: number
  #toldSeq: number
  #untoldBytes = 0
  #isBehind = false
  #isLast = false
  #isClosed = false
  #failure: RelayFailure | undefined
  #gapTimer: NodeJS.Timeout | undefined
  #gapSince = 0
  #isHole = false
  #burstTimer: NodeJS.Timeout | undefined
  #isWaking = false
  #wake: (() => void) | undefined

  constructor(seq: number, hooks: RelayedStreamHooks, limits: RelayLimits = RELAY_LIMITS) {
    this.#seq = seq
    this.#takenSeq = seq
    this.#toldSeq = seq
    this.#hooks = hooks
    this.#limits = limits
  }

  /** Number of the last frame accepted. */
  get seq(): number {
    return this.#seq
  }

  /** Frames `seq` to `seq + count - 1`. Returns whether they were the next ones. */
  accept({ seq, count, body, isLast }: { seq: number; count: number; body: Buffer; isLast: boolean }): boolean {
    if (this.#isOver || seq + count - 1 <= this.#seq) return false
    if (seq !== this.#seq + 1) {
      this.#missed(true)
      return false
    }
    if (this.#pendingBytes > this.#limits.maxHeldBytes) {
      this.#fallBehind()
      return false
    }
    this.#repaired()
    this.#seq += count
    this.#isLast = isLast
    // What has to wait is copied: a view would keep the whole message that it came in.
    this.#pending.push({ text: this.#isAwaited ? body : Buffer.from(body), lastSeq: this.#seq })
    this.#pendingBytes += body.length
    if (this.#isBurst) this.#burstTimer ??= setTimeout(this.#endBurst, this.#limits.burstMs).unref()
    this.#wakeSoon()
    return true
  }

  /** The run has frames up to `seq`: what never came is missing too, even when nothing follows it. */
  announced(seq: number): void {
    if (seq > this.#seq) this.#missed(true)
  }

  /** Says how far the reader is. */
  tellTaken(): void {
    this.#toldSeq = this.#takenSeq
    this.#untoldBytes = 0
    this.#hooks.taken?.(this.#takenSeq)
  }

  /** The worker no longer has the next frame. */
  gone(): void {
    const isCatchingUp = this.#gapTimer !== undefined && !this.#isHole
    this.fail(this.#isBehind || isCatchingUp ? 'slow_consumer' : 'stream_gap')
  }

  /** Ends the stream with a terminal frame of the gateway's own, behind what was received. */
  fail(code: RelayFailure): void {
    if (this.#isOver) return
    this.#failure = code
    this.#stopAsking()
    this.#hooks.failed?.(code)
    this.#wakeSoon()
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (this.#pending.length === 0 && !this.#isOver) {
      if (this.#isBehind) this.#catchUp()
      this.#isAwaited = true
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    if (this.#pending.length > 0 && !this.#isClosed) return { done: false, value: this.#take() }
    if (this.#failure === undefined || this.#isClosed) return this.return()
    const text = renderReaderFailure(this.#seq, this.#failure)
    this.#failure = undefined
    this.#isLast = true
    return { done: false, value: { text, lastSeq: this.#seq } }
  }

  return(): Promise<IteratorResult<Frames, undefined>> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#stopAsking()
      clearTimeout(this.#burstTimer)
      this.#pending = []
      this.#wakeSoon()
      this.#hooks.closed()
    }
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  get #isOver(): boolean {
    return this.#isLast || this.#isClosed || this.#failure !== undefined
  }

  get #isBurst(): boolean {
    return this.#pending.length > 1 && this.#pendingBytes > this.#limits.maxHeldBytes / 2
  }

  /** The reader has taken nothing of it. Behind a failure nothing could be asked for again. */
  readonly #endBurst = (): void => {
    this.#burstTimer = undefined
    if (this.#isBurst && this.#failure === undefined) this.#fallBehind()
  }

  #fallBehind(): void {
    if (this.#isBehind) return
    this.#isBehind = true
    this.#isLast = false
    while (this.#isBurst) this.#pendingBytes -= this.#pending.pop()?.text.length ?? 0
    this.#seq = this.#pending.at(-1)?.lastSeq ?? this.#seq
  }

  /** The next write: whole frames, in memory of their own. */
  #take(): Frames {
    this.#isAwaited = false
    clearTimeout(this.#burstTimer)
    this.#burstTimer = undefined
    let bytes = 0
    const over = this.#pending.findIndex(({ text }, i) => {
      bytes += text.length
      return i > 0 && bytes > this.#limits.maxHeldBytes / 2
    })
    const taken = this.#pending.splice(0, over < 0 ? this.#pending.length : over)
    const text = Buffer.concat(taken.map((each) => each.text))
    this.#pendingBytes -= text.length
    this.#takenSeq = taken.at(-1)?.lastSeq ?? this.#seq
    this.#untoldBytes += text.length
    if (this.#takenSeq - this.#toldSeq >= TELL_EVENTS || this.#untoldBytes >= TELL_BYTES) this.tellTaken()
    return { text, lastSeq: this.#takenSeq }
  }

  /** The reader has taken all that was kept: the rest is asked for. */
  #catchUp(): void {
    this.#isBehind = false
    this.#missed(false)
  }

  /** `isHole`: the frames were lost on the way, not dropped here. */
  #missed(isHole: boolean): void {
    if (this.#isOver || this.#isBehind || this.#gapTimer) return
    this.#isHole = isHole
    if (isHole) this.#hooks.gap?.('asked')
    this.#gapSince = performance.now()
    this.#ask()
  }

  #ask(): void {
    if (!this.#hooks.resend(this.#seq)) this.#gapSince = performance.now()
    this.#gapTimer = setTimeout(() => {
      if (performance.now() - this.#gapSince >= this.#limits.gapMs) return this.fail('stream_gap')
      this.#ask()
    }, this.#limits.askAgainMs).unref()
  }

  #repaired(): void {
    if (!this.#gapTimer) return
    if (this.#isHole) this.#hooks.gap?.('repaired')
    this.#stopAsking()
  }

  #stopAsking(): void {
    clearTimeout(this.#gapTimer)
    this.#gapTimer = undefined
  }

  #wakeSoon(): void {
    if (this.#isWaking) return
    this.#isWaking = true
    setImmediate(() => {
      this.#isWaking = false
      this.#wake?.()
    })
  }
}

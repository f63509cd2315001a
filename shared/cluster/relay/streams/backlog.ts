import type { Frames, Position } from '../../journal/frame-stream.ts'

export type BacklogLimits = {
  /**
   * The most bytes that a client which does not read may occupy in this process: half of them in an unfinished write, half
   * in the backlog. The backlog may use all of them for `burstMs`.
   */
  maxHeldBytes: number
  burstMs: number
}

/** Bytes that were received and not yet taken. A view keeps its whole message in memory. */
type Chunk = { body: Buffer; to: Position; isView: boolean }

/** Frames, or a piece of one, from one position to another. `isLast`: they include the run's last frame. */
export type ReceivedFrames = { from: Position; to: Position; body: Buffer; isLast: boolean }

/**
 * Holds the frames of one stream that were received in order and not yet taken. It is bounded: frames that do not fit are dropped,
 * and have to be requested again from `position`. A burst is more than half of `maxHeldBytes`, in more than one chunk.
 *
 * | State    | Event                                           | Next state                                      |
 * |----------|-------------------------------------------------|-------------------------------------------------|
 * | open     | `add` makes a burst                             | burst: the timer of `burstMs` starts            |
 * | burst    | `take` or `keepAll`                             | open: the timer stops                           |
 * | burst    | the timer ends                                  | dropping: the newest frames, until no burst     |
 * | any      | `add` when more than `maxHeldBytes` are held    | dropping: also the frames that were to be added |
 * | dropping | `reopen`, when all frames have been taken       | open                                            |
 */
export class Backlog {
  readonly #limits: BacklogLimits
  #position: Position
  #chunks: Chunk[] = []
  #bytes = 0
  #hasLast = false
  #isDropping = false
  #burstTimer: NodeJS.Timeout | undefined

  constructor(seq: number, limits: BacklogLimits) {
    this.#position = { seq, pieces: 0 }
    this.#limits = limits
  }

  /** The position after the newest added frame, even if that was already taken. */
  get position(): Position {
    return this.#position
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0
  }

  /** Whether the run's last frame is held or was taken. */
  get hasLast(): boolean {
    return this.#hasLast
  }

  get isDropping(): boolean {
    return this.#isDropping
  }

  /**
   * Adds the frames that follow the position. Returns `false` when they do not fit and were dropped. The body is copied, unless
   * `isTakenSoon` says that it will probably be taken in this event-loop turn.
   */
  add({ to, body, isLast }: ReceivedFrames, isTakenSoon: boolean): boolean {
    if (this.#bytes > this.#limits.maxHeldBytes) {
      this.#drop()
      return false
    }
    this.#position = to
    this.#hasLast = isLast
    this.#chunks.push({ body: isTakenSoon ? body : joined([body]), to, isView: isTakenSoon })
    this.#bytes += body.length
    if (this.#isBurst) this.#burstTimer ??= setTimeout(this.#endBurst, this.#limits.burstMs).unref()
    return true
  }

  /** Marks the last frame that is held or was taken as the run's last. */
  end(): void {
    this.#hasLast = true
  }

  /** Continues after frame `seq`. Call it while nothing is held. */
  restartAfter(seq: number): void {
    this.#position = { seq, pieces: 0 }
  }

  /** Takes the next write: as many frames as fit into half of the limit, but at least one chunk, copied out of their messages. */
  take(): Frames & { text: Buffer } {
    this.keepAll()
    let [count, bytes] = [0, 0]
    for (const { body } of this.#chunks) {
      bytes += body.length
      if (count > 0 && bytes > this.#limits.maxHeldBytes / 2) break
      count++
    }
    const taken = this.#chunks.splice(0, count)
    for (const chunk of this.#chunks)
      if (chunk.isView) Object.assign(chunk, { body: joined([chunk.body]), isView: false })
    const text = joined(taken.map(({ body }) => body))
    this.#bytes -= text.length
    const { seq: lastSeq, pieces } = taken.at(-1)?.to ?? this.#position
    return { text, lastSeq, ...(pieces > 0 && { pieces }) }
  }

  /** Ends the dropping. Call it when everything was taken, and request the frames after the position. */
  reopen(): void {
    this.#isDropping = false
  }

  /** Ends a burst without dropping its frames: they stay until the reader takes them. */
  keepAll(): void {
    clearTimeout(this.#burstTimer)
    this.#burstTimer = undefined
  }

  clear(): void {
    this.keepAll()
    this.#chunks = []
    this.#bytes = 0
  }

  get #isBurst(): boolean {
    return this.#chunks.length > 1 && this.#bytes > this.#limits.maxHeldBytes / 2
  }

  readonly #endBurst = (): void => {
    this.#burstTimer = undefined
    this.#drop()
  }

  #drop(): void {
    if (this.#isDropping) return
    this.#isDropping = true
    this.#hasLast = false
    while (this.#isBurst) this.#bytes -= this.#chunks.pop()?.body.length ?? 0
    this.#position = this.#chunks.at(-1)?.to ?? this.#position
  }
}

const SMALL_BYTES = 4 * 1024

/**
 * Copies the buffers into one with its own memory. `Buffer.concat` is faster, but uses a part of a 64 KiB pool and
 * keeps the whole pool in memory.
 */
function joined(buffers: readonly Buffer[]): Buffer {
  const length = buffers.reduce((sum, each) => sum + each.length, 0)
  if (length < SMALL_BYTES) return Buffer.concat(buffers, length)
  const all = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const buffer of buffers) at += buffer.copy(all, at)
  return all
}

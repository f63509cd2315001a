import { FrameScanner, isPush, mayBePubSub, type PubSubMessage, RespError, readPubSub } from '../resp.ts'

/** A longer frame goes through unread. */
const MAX_HELD_BYTES = 64 * 1024 * 1024

export type FilterPorts = {
  /** Decides on every pub/sub message, in order. */
  keep(message: PubSubMessage): boolean
  /** The connection is a subscriber's. */
  onSubscribed(): void
  /** From here on the bytes go through as they come: they are not to be understood. */
  onUnreadable(): void
  forward(bytes: Buffer): void
}

/**
 * Takes single pub/sub messages out of what a Redis sends. All other bytes go through unchanged and in order, without being
 * copied; only a frame that may be a message is held back until it is whole.
 */
export class MessageFilter {
  readonly #ports: FilterPorts
  readonly #scanner = new FrameScanner()
  /** The pieces, from earlier chunks, of a frame that may be a message. */
  #held: Buffer[] = []
  #heldBytes = 0
  /** The frame in progress was too long to be held. */
  #isPassing = false
  #isSubscribed = false
  #isUnreadable = false

  constructor(ports: FilterPorts) {
    this.#ports = ports
  }

  take(chunk: Buffer): void {
    let from = 0 // Where the bytes begin that have not gone through yet.
    let at = 0
    try {
      while (!this.#isUnreadable && at < chunk.length) {
        const end = this.#scanner.endOf(chunk, at)
        if (end < 0) break
        if (!this.#isKept(chunk.subarray(at, end))) {
          this.#forward(chunk.subarray(from, at))
          from = end
        }
        at = end
      }
    } catch (cause) {
      this.#giveUp(cause)
    }
    if (at === chunk.length || !this.#isHolding) return this.#forward(chunk.subarray(from))
    this.#forward(chunk.subarray(from, at))
    this.#hold(chunk.subarray(at))
  }

  /** Is the frame in progress one to hold back? */
  get #isHolding(): boolean {
    return !this.#isUnreadable && !this.#isPassing && mayBePubSub(this.#scanner.type)
  }

  #hold(piece: Buffer): void {
    this.#held.push(piece)
    this.#heldBytes += piece.length
    if (this.#heldBytes <= MAX_HELD_BYTES) return
    this.#isPassing = true
    this.#release()
  }

  /** Decides on a frame that ends with `rest`; what is held of it goes through first, or not at all. */
  #isKept(rest: Buffer): boolean {
    const isKept = !this.#isHolding || this.#isKeptFrame(this.#held.length > 0 ? this.#whole(rest) : rest)
    this.#isPassing = false
    if (isKept) this.#release()
    this.#drop()
    return isKept
  }

  #whole(rest: Buffer): Buffer {
    return Buffer.concat([...this.#held, rest])
  }

  #isKeptFrame(frame: Buffer): boolean {
    const said = readPubSub(frame)
    if (said === undefined) return true
    if (said !== 'subscribed') return !(isPush(this.#scanner.type) || this.#isSubscribed) || this.#ports.keep(said)
    this.#isSubscribed = true
    this.#ports.onSubscribed()
    return true
  }

  #giveUp(cause: unknown): void {
    if (!(cause instanceof RespError)) throw cause
    this.#isUnreadable = true
    this.#ports.onUnreadable()
    this.#release()
  }

  #release(): void {
    for (const piece of this.#held) this.#ports.forward(piece)
    this.#drop()
  }

  #drop(): void {
    this.#held = []
    this.#heldBytes = 0
  }

  #forward(bytes: Buffer): void {
    if (bytes.length > 0) this.#ports.forward(bytes)
  }
}

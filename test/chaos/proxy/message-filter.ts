import { FrameScanner, isPush, mayBePubSub, type PubSubMessage, RespError, readPubSub } from '../resp.ts'

/** A longer frame is forwarded without being parsed. */
const MAX_HELD_BYTES = 64 * 1024 * 1024

export type FilterPorts = {
  /** Returns whether to forward a pub/sub message. Called for each, in order. */
  keep(message: PubSubMessage): boolean
  /** The server has confirmed a subscription on this connection. */
  onSubscribed(): void
  /** The bytes cannot be parsed and are forwarded unchanged from here on. */
  onUnreadable(): void
  forward(bytes: Buffer): void
}

/**
 * Removes single pub/sub messages from the bytes that Redis sends. All other bytes are forwarded unchanged and in order,
 * without a copy. Only a frame that may be a message is held back until it is complete.
 */
export class MessageFilter {
  readonly #ports: FilterPorts
  readonly #scanner = new FrameScanner()
  /** Pieces from earlier chunks of a frame that may be a message. */
  #held: Buffer[] = []
  #heldBytes = 0
  /** The current frame was too long to be held back. */
  #isPassing = false
  #isSubscribed = false
  #isUnreadable = false

  constructor(ports: FilterPorts) {
    this.#ports = ports
  }

  take(chunk: Buffer): void {
    let from = 0 // Start of the bytes that are not forwarded yet.
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

  /** Whether to hold back the current frame. */
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

  /** Decides on a frame that ends with `rest`. Its held pieces are forwarded or dropped. */
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
    const message = readPubSub(frame)
    if (message === undefined) return true
    if (message !== 'subscribed')
      return !(isPush(this.#scanner.type) || this.#isSubscribed) || this.#ports.keep(message)
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

import type { Breach, ModelLimits } from './limits.ts'
import { StreamMeter } from './stream-meter.ts'

/** How long a provider may take to end its response after it has said everything. */
const GOODBYE_MS = 250

/** A timer that comes later than this was held up by our own process: what it measures is then not the provider's time. */
const OWN_PAUSE_MS = 500

/** Watches over one model call: any limit, and the caller's signal, closes the connection to the provider. */
export class CallWatch {
  /** The limit that ended the call, if one did. */
  breach: Breach | undefined
  /** A request has left: what goes wrong from here on is no bug of ours. */
  isSent = false
  readonly #limits: ModelLimits
  readonly #caller: AbortSignal
  readonly #controller = new AbortController()
  readonly #meter: StreamMeter
  #timer: NodeJS.Timeout
  #wakeAt = 0
  #turnEndsAt: number
  #waitEndsAt: number | undefined
  #hasBytes = false

  constructor(limits: ModelLimits, caller: AbortSignal) {
    this.#limits = limits
    this.#caller = caller
    this.#meter = new StreamMeter(limits)
    const now = performance.now()
    this.#turnEndsAt = now + limits.turnMs
    this.#waitEndsAt = now + limits.firstByteMs
    this.#timer = this.#arm(now)
    caller.addEventListener('abort', this.#abort)
    if (caller.aborted) this.#abort()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** We ask the provider for bytes: its silence counts from here on. */
  ask(): void {
    if (this.#hasBytes) this.#waitEndsAt = performance.now() + this.#limits.idleMs
  }

  /** Bytes have come, of a stream or of an error's page. False when they are too many or no text: then the call is over. */
  take(chunk: Uint8Array, isStream: boolean): boolean {
    this.#waitEndsAt = undefined
    if (!this.#hasBytes) {
      this.#hasBytes = true
      this.#rearm()
    }
    const breach = isStream ? this.#meter.add(chunk) : this.#meter.addPage(chunk)
    if (breach) this.break(breach)
    return breach === undefined
  }

  break(breach: Breach): void {
    this.breach ??= breach
    this.#controller.abort(breach)
  }

  /** Everything has been said: the response may end by itself, so that its connection can be used again, but soon. */
  expectEnd(): void {
    this.#turnEndsAt = Math.min(this.#turnEndsAt, performance.now() + GOODBYE_MS)
    this.#rearm()
  }

  /** A connection whose answer was read to its end is not affected: it stays in the pool. */
  close(): void {
    clearTimeout(this.#timer)
    this.#caller.removeEventListener('abort', this.#abort)
    if (!this.signal.aborted) this.#controller.abort('closed') // A reason of its own saves the making of an error.
  }

  #rearm(): void {
    clearTimeout(this.#timer)
    this.#timer = this.#arm(performance.now())
  }

  #arm(now: number): NodeJS.Timeout {
    this.#wakeAt = Math.min(this.#turnEndsAt, this.#waitEndsAt ?? now + this.#limits.idleMs)
    return setTimeout(this.#check, Math.max(1, Math.ceil(this.#wakeAt - now)))
  }

  readonly #check = () => {
    const now = performance.now()
    const slip = now - this.#wakeAt
    if (slip > OWN_PAUSE_MS) {
      this.#turnEndsAt += slip
      if (this.#waitEndsAt !== undefined) this.#waitEndsAt += slip
    }
    if (now >= this.#turnEndsAt) this.break('turn')
    else if (this.#waitEndsAt !== undefined && now >= this.#waitEndsAt)
      this.break(this.#hasBytes ? 'idle' : 'first_byte')
    else this.#timer = this.#arm(now)
  }

  readonly #abort = () => this.#controller.abort(this.#caller.reason)
}

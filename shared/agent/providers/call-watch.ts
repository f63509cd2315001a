import type { Breach, ModelLimits } from './limits.ts'
import type { ModelRequest } from './port.ts'
import { StreamMeter } from './stream-meter.ts'

/** How long a response may stay open after the model's last event. */
const END_GRACE_MS = 250

/** A timer that fires later than this was delayed by a pause of this process, and the deadlines move by the delay. */
const OWN_PAUSE_MS = 500

/** Enforces the limits of one model call: an exceeded limit, or the caller's signal, aborts `signal`. */
export class CallWatch {
  /** The limit that ended the call, if one did. */
  breach: Breach | undefined
  /** A request was sent: an error from here on is the provider's or the network's, and not a bug. */
  isSent = false
  /** Called with the account's limits from the headers of an answer. */
  onTold: ModelRequest['onTold']
  readonly #limits: ModelLimits
  readonly #caller: AbortSignal
  readonly #controller = new AbortController()
  #meter: StreamMeter
  #timer: NodeJS.Timeout
  #wakeAt = 0
  #turnEndsAt: number
  /** Until when the response may stay open after the model has ended its answer. */
  #graceEndsAt = Number.POSITIVE_INFINITY
  /** The deadline for the next bytes; undefined while no read is pending. */
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

  /** Call it before each read: the idle limit counts from here. */
  beginRead(): void {
    if (this.#hasBytes) this.#waitEndsAt = performance.now() + this.#limits.idleMs
  }

  /** Call it before the request is sent again: the limits for bytes start again, but the time limit of the whole turn does not. */
  restart(): void {
    this.#meter = new StreamMeter(this.#limits)
    this.#hasBytes = false
    this.#waitEndsAt = performance.now() + this.#limits.firstByteMs
    this.#rearm()
  }

  /** Checks bytes of an event stream or of an error body. Returns false when they exceed a limit; the call is then ended. */
  accept(chunk: Uint8Array, isStream: boolean): boolean {
    this.#waitEndsAt = undefined
    if (!this.#hasBytes) {
      this.#hasBytes = true
      this.#rearm()
    }
    const breach = isStream ? this.#meter.add(chunk) : this.#meter.addErrorBody(chunk)
    if (breach) this.end(breach)
    return breach === undefined
  }

  /** Ends the call. The first breach is kept. */
  end(breach: Breach): void {
    this.breach ??= breach
    this.#controller.abort(breach)
  }

  /** The model's last event was read. The response gets a short time to end, so that its connection can be reused. */
  expectEnd(): void {
    this.#endWithin(END_GRACE_MS)
  }

  /** Call it when the model has sent its finish reason: the rest, such as token counts, gets a short time from now. */
  expectRest(): void {
    this.#endWithin(this.#limits.finishMs)
  }

  #endWithin(ms: number): void {
    this.#graceEndsAt = performance.now() + ms
    this.#rearm()
  }

  /** Call it when the caller has its answer: its signal no longer closes the connection. */
  detach(): void {
    this.#caller.removeEventListener('abort', this.#abort)
  }

  /** Ends the watch over a response that was read to its end. */
  release(): void {
    clearTimeout(this.#timer)
    this.detach()
  }

  /** Closes the connection, unless the response was read to its end: then the connection stays in the pool. */
  close(): void {
    this.release()
    if (!this.signal.aborted) this.#controller.abort('closed') // A string: the default reason would create an Error object.
  }

  /** A timer that fires earlier stays: it then waits for the rest. */
  #rearm(): void {
    const now = performance.now()
    if (this.#nextCheckAt(now) >= this.#wakeAt) return
    clearTimeout(this.#timer)
    this.#timer = this.#arm(now)
  }

  #nextCheckAt(now: number): number {
    return Math.min(this.#turnEndsAt, this.#graceEndsAt, this.#waitEndsAt ?? now + this.#limits.idleMs)
  }

  #arm(now: number): NodeJS.Timeout {
    this.#wakeAt = this.#nextCheckAt(now)
    return setTimeout(this.#check, Math.max(1, Math.ceil(this.#wakeAt - now)))
  }

  readonly #check = () => {
    const now = performance.now()
    const delayMs = now - this.#wakeAt
    if (delayMs > OWN_PAUSE_MS) {
      this.#turnEndsAt += delayMs
      this.#graceEndsAt += delayMs
      if (this.#waitEndsAt !== undefined) this.#waitEndsAt += delayMs
      this.#timer = this.#arm(now) // Bytes that arrived during the pause are read before the next check.
      return
    }
    if (now >= Math.min(this.#turnEndsAt, this.#graceEndsAt)) this.end('turn')
    else if (this.#waitEndsAt !== undefined && now >= this.#waitEndsAt) this.end(this.#hasBytes ? 'idle' : 'first_byte')
    else this.#timer = this.#arm(now)
  }

  readonly #abort = () => this.#controller.abort(this.#caller.reason)
}

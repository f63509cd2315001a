export type GapLimits = {
  /** Time from the first request for the missing frames to the second. It doubles after each request, up to `maxAskAgainMs`. */
  askAgainMs: number
  maxAskAgainMs: number
}

/** Why frames are missing: lost on the way from the worker, or dropped here because the client did not read. */
export type GapCause = 'lost' | 'dropped'

export type GapRepairHooks = {
  /** Requests the missing frames. Returns `false` when the worker cannot be asked now. */
  request(): boolean
  /** Called when frames were lost on the way, and when they have arrived. Not called for dropped frames. */
  onGap(state: 'asked' | 'repaired'): void
}

/**
 * Requests the missing frames of one stream until they come. It has no time limit: a worker that is a member keeps the frames of
 * its streams, and says so when it no longer has them. The end of a worker's membership ends its streams.
 *
 * | State  | Event                                    | Next state                                              |
 * |--------|------------------------------------------|---------------------------------------------------------|
 * | idle   | `start`                                  | asking: the frames are requested                        |
 * | asking | the time since the last request is over  | asking: they are requested again, and the time doubles  |
 * | asking | `filled` (they came), `stop`             | idle                                                    |
 *
 * The time does not double after a request that could not be sent.
 */
export class GapRepair {
  readonly #hooks: GapRepairHooks
  readonly #limits: GapLimits
  #cause: GapCause | undefined
  #waitMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(hooks: GapRepairHooks, limits: GapLimits) {
    this.#hooks = hooks
    this.#limits = limits
  }

  /** The cause of the gap that is being repaired; `undefined` when idle. */
  get cause(): GapCause | undefined {
    return this.#cause
  }

  /** Does nothing when a repair is running. */
  start(cause: GapCause): void {
    if (this.#cause) return
    this.#cause = cause
    if (cause === 'lost') this.#hooks.onGap('asked')
    this.#waitMs = this.#limits.askAgainMs
    this.#ask()
  }

  /** Ends the repair: the next frames have come. */
  filled(): void {
    if (this.#cause === 'lost') this.#hooks.onGap('repaired')
    this.stop()
  }

  /** Ends the repair: the stream is over. */
  stop(): void {
    if (!this.#cause) return
    this.#cause = undefined
    clearTimeout(this.#timer)
  }

  readonly #ask = (): void => {
    const isSent = this.#hooks.request()
    this.#timer = setTimeout(this.#ask, this.#waitMs).unref()
    if (isSent) this.#waitMs = Math.min(this.#waitMs * 2, this.#limits.maxAskAgainMs)
  }
}

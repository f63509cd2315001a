export type GapLimits = {
  /** How long a gap may stay open before the repair gives up. */
  gapMs: number
  /** Time between two requests for the missing frames. */
  askAgainMs: number
}

/** Why frames are missing: lost on the way from the worker, or dropped here because the client did not read. */
export type GapCause = 'lost' | 'dropped'

export type GapRepairHooks = {
  /** Requests the missing frames. Returns `false` when the worker cannot be asked now. */
  request(): boolean
  /** Called when frames were lost on the way, and when they have come. Not called for dropped frames. */
  onGap(state: 'asked' | 'repaired'): void
  /** Called when the missing frames did not come within `gapMs`. */
  onGivenUp(): void
}

/**
 * Requests the missing frames of one stream until they come.
 *
 * | State  | Event                                    | Next state                        |
 * |--------|------------------------------------------|-----------------------------------|
 * | idle   | `start`                                  | asking: the frames are requested  |
 * | asking | `askAgainMs` have passed                 | asking: they are requested again  |
 * | asking | `gapMs` have passed                      | idle: `onGivenUp` is called       |
 * | asking | `filled` (they came), `stop`             | idle                              |
 *
 * The `gapMs` are counted from the start, or from the last request that could not be sent: an outage of Redis does not end the
 * stream.
 */
export class GapRepair {
  readonly #hooks: GapRepairHooks
  readonly #limits: GapLimits
  #cause: GapCause | undefined
  #sinceMs = 0
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
    this.#sinceMs = performance.now()
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

  #ask(): void {
    if (!this.#hooks.request()) this.#sinceMs = performance.now()
    this.#timer = setTimeout(this.#askAgain, this.#limits.askAgainMs).unref()
  }

  readonly #askAgain = (): void => {
    if (performance.now() - this.#sinceMs < this.#limits.gapMs) return this.#ask()
    this.stop()
    this.#hooks.onGivenUp()
  }
}

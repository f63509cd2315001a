import type { RunErrorCode } from '../../../kernel/events.ts'

/**
 * Ends the agents of one execution: when the caller's signal is aborted, after `limitMs`, or by `end`. `signal` is aborted with a
 * `RunErrorCode`, and `cause` is that code unless `end` was called first.
 */
export class Stop {
  readonly #controller = new AbortController()
  readonly #caller: AbortSignal
  readonly #timer: NodeJS.Timeout
  #cause: RunErrorCode | undefined
  readonly #onAbort = () => this.#stop(this.#caller.reason as RunErrorCode)

  constructor(caller: AbortSignal, limitMs: number) {
    this.#caller = caller
    this.#timer = setTimeout(() => this.#stop('timeout'), limitMs)
    if (caller.aborted) this.#onAbort()
    else caller.addEventListener('abort', this.#onAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Why the execution was stopped from outside. */
  get cause(): RunErrorCode | undefined {
    return this.#cause
  }

  /** Ends agents that are still running, because their outcome no longer matters. */
  end(): void {
    this.#controller.abort('cancelled' satisfies RunErrorCode)
  }

  dispose(): void {
    clearTimeout(this.#timer)
    this.#caller.removeEventListener('abort', this.#onAbort)
    this.end()
  }

  #stop(code: RunErrorCode): void {
    if (this.signal.aborted) return
    this.#cause = code
    this.#controller.abort(code)
  }
}

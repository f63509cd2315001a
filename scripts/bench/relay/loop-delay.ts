import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 1
const NS_PER_MS = 1e6

/** Measures the longest delay of this process's event loop. */
export class LoopDelay {
  #histogram: ReturnType<typeof monitorEventLoopDelay> | undefined

  start(): void {
    this.#histogram ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    this.#histogram.enable()
    this.#histogram.reset()
  }

  /** The longest delay since `start` or the last call. */
  maxMs(): number {
    const ns = this.#histogram?.max ?? 0
    this.#histogram?.reset()
    return Math.max(0, ns / NS_PER_MS - RESOLUTION_MS)
  }
}

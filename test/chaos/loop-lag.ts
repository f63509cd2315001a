import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 10
const NS_PER_MS = 1e6

/** How late this process's own timers were: what the measured times may be too long by. */
export class LoopLag implements Disposable {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  constructor() {
    this.#delay.enable()
  }

  get text(): string {
    const ms = (ns: number) => Math.max(0, Math.round(ns / NS_PER_MS - RESOLUTION_MS))
    // Not the longest: that is the checker's work, when all has been measured.
    return `own loop slip p99 ${ms(this.#delay.percentile(99))}, p99.9 ${ms(this.#delay.percentile(99.9))} ms`
  }

  [Symbol.dispose](): void {
    this.#delay.disable()
  }
}

import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 10
const NS_PER_MS = 1e6

/** Measures how late this process's own timers fire. Measured times may be too long by as much. */
export class LoopLag implements Disposable {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  constructor() {
    this.#delay.enable()
  }

  get text(): string {
    const ms = (ns: number) => Math.max(0, Math.round(ns / NS_PER_MS - RESOLUTION_MS))
    // Without the maximum, which the checker causes after the measurement.
    return `event-loop lag of this script p99 ${ms(this.#delay.percentile(99))}, p99.9 ${ms(this.#delay.percentile(99.9))} ms`
  }

  [Symbol.dispose](): void {
    this.#delay.disable()
  }
}

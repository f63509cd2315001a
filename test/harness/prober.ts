import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export type ProbeOrder = {
  port: number
  path: string
  everyMs: number
  /** A new connection for each request, instead of one for all. */
  isFresh: boolean
}

export type Probed = {
  /** Of all answers, in milliseconds. */
  times: number[]
  /** Requests that were not answered with 200. */
  failures: number
}

/** Asks a health path at fixed times, from a thread of its own: whatever this process is busy with is not in the times. */
export class Prober {
  readonly #worker: Worker

  constructor(port: number, { everyMs = 20, isFresh = false } = {}) {
    const order: ProbeOrder = { port, path: '/v1/health', everyMs, isFresh }
    this.#worker = new Worker(new URL('prober-thread.ts', import.meta.url), { workerData: order })
  }

  async stop(): Promise<Probed> {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    this.#worker.postMessage('stop')
    const [probed] = await once(this.#worker, 'message')
    await this.#worker.terminate()
    return probed as Probed
  }
}

/**
 * One answer's time, and the times that requests would have waited that were due meanwhile and could not be sent: without them a
 * long stall would count as one slow answer among hundreds.
 */
export function withMissed(ms: number, everyMs: number): number[] {
  const missed = Math.max(0, Math.ceil(ms / everyMs) - 1)
  return Array.from({ length: missed + 1 }, (_, i) => ms - i * everyMs)
}

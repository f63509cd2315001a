import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

export type ProbeOptions = {
  port: number
  path: string
  everyMs: number
  /** Opens a new connection for each request; otherwise one connection serves all. */
  isFresh: boolean
}

export type Probed = {
  /** Response times in milliseconds, with those of the requests that a slow answer delayed (see `withMissed`). */
  times: number[]
  /** Requests that were not answered with 200. */
  failures: number
}

/** Requests /health at fixed times from its own thread, so that the load of the main thread does not add to the times. */
export class HealthProber {
  readonly #worker: Worker
  /** Resolves when the first request was answered or has failed. It takes longer, as the thread and its connection begin with it. */
  readonly ready: Promise<unknown>

  constructor(port: number, { everyMs = 20, isFresh = false, path = '/v1/health' } = {}) {
    const options: ProbeOptions = { port, path, everyMs, isFresh }
    this.#worker = new Worker(new URL('health-prober-thread.ts', import.meta.url), { workerData: options })
    this.ready = once(this.#worker, 'message')
  }

  async stop(): Promise<Probed> {
    await this.ready
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    this.#worker.postMessage('stop')
    const [probed] = await once(this.#worker, 'message')
    await this.#worker.terminate()
    return probed as Probed
  }
}

/**
 * One response time, followed by the waits of the requests that were due in the meantime and could not be sent. Without
 * them a stall of a second would count as one slow answer among hundreds of fast ones (coordinated omission).
 */
export function withMissed(ms: number, everyMs: number): number[] {
  const missed = Math.max(0, Math.ceil(ms / everyMs) - 1)
  return Array.from({ length: missed + 1 }, (_, i) => ms - i * everyMs)
}

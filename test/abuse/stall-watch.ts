import { setTimeout as sleep } from 'node:timers/promises'
import type { RunPage } from '../../shared/cluster/commands/runs.ts'
import { until } from '../support/until.ts'

const LOOK_EVERY_MS = 250
const ANSWER_WITHIN_MS = 10_000
const STALL_WITHIN_MS = 60_000

type Progress = { events: number; sinceMs: number }

/** Observes in `GET /runs` when runs stop producing events because nobody reads them, and when that ends. */
export class StallWatch {
  readonly #url: string
  readonly #progress = new Map<string, Progress>()

  constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}/v1/runs?limit=200`
  }

  /** Waits until none of the runs has produced an event for `calmMs`. Resolves with their event counts. */
  async stalled(runIds: readonly string[], calmMs: number): Promise<number[]> {
    const isStalled = (id: string) => performance.now() - this.#sinceMs(id) >= calmMs
    await until(
      async () => {
        await this.#look()
        return runIds.every(isStalled)
      },
      {
        what: 'all runs to stall',
        withinMs: STALL_WITHIN_MS,
        everyMs: LOOK_EVERY_MS,
        lastSeen: () => `${runIds.filter(isStalled).length} of ${runIds.length} stalled`,
      },
    )
    return runIds.map((id) => this.#progress.get(id)?.events ?? 0)
  }

  /**
   * How long a stalled run had been stalled when it continued or was gone; `undefined` when neither happened in time. Works
   * only while `run` is observing.
   */
  async released(runId: string, withinMs: number): Promise<number | undefined> {
    const sinceMs = this.#progress.get(runId)?.sinceMs ?? 0
    while (performance.now() - sinceMs < withinMs) {
      await sleep(LOOK_EVERY_MS)
      if (this.#progress.get(runId)?.sinceMs !== sinceMs) return performance.now() - sinceMs
    }
    return undefined
  }

  /** Observes until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(LOOK_EVERY_MS)
      await this.#look()
    }
  }

  #sinceMs(id: string): number {
    return this.#progress.get(id)?.sinceMs ?? performance.now()
  }

  async #look(): Promise<void> {
    const response = await fetch(this.#url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    const { runs } = (await response.json()) as RunPage
    const live = new Map(runs.map((run) => [run.run_id, run.event_count]))
    for (const id of this.#progress.keys()) if (!live.has(id)) this.#progress.delete(id)
    for (const [id, events] of live) {
      if (this.#progress.get(id)?.events !== events) this.#progress.set(id, { events, sinceMs: performance.now() })
    }
  }
}

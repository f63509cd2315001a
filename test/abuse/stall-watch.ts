import { setTimeout as sleep } from 'node:timers/promises'
import type { RunPage } from '../../shared/broker/port.ts'

const LOOK_EVERY_MS = 250

type Seen = { events: number; sinceMs: number }

/** Sees in `GET /runs` when runs come to stand because nobody reads them, and when they are let go. */
export class StallWatch {
  readonly #url: string
  readonly #seen = new Map<string, Seen>()

  constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}/v1/runs?limit=200`
  }

  /** Resolves when none of the runs has moved for `calmMs`, with their numbers of events. */
  async stand(runIds: readonly string[], calmMs: number): Promise<number[]> {
    const stands = (id: string) => performance.now() - (this.#seen.get(id)?.sinceMs ?? performance.now()) >= calmMs
    do await this.#look()
    while (!runIds.every(stands))
    return runIds.map((id) => this.#seen.get(id)?.events ?? 0)
  }

  /** How long a run that stands has stood when it moves again or is gone; `undefined` when it does neither. Needs `run`. */
  async letGo(runId: string, withinMs: number): Promise<number | undefined> {
    const sinceMs = this.#seen.get(runId)?.sinceMs ?? 0
    while (performance.now() - sinceMs < withinMs) {
      await sleep(LOOK_EVERY_MS)
      if (this.#seen.get(runId)?.sinceMs !== sinceMs) return performance.now() - sinceMs
    }
    return undefined
  }

  /** Keeps looking until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.#look()
  }

  async #look(): Promise<void> {
    await sleep(LOOK_EVERY_MS)
    const response = await fetch(this.#url, { signal: AbortSignal.timeout(10_000) })
    const { runs } = (await response.json()) as RunPage
    const live = new Map(runs.map((run) => [run.run_id, run.event_count]))
    for (const id of this.#seen.keys()) if (!live.has(id)) this.#seen.delete(id)
    for (const [id, events] of live) {
      if (this.#seen.get(id)?.events !== events) this.#seen.set(id, { events, sinceMs: performance.now() })
    }
  }
}

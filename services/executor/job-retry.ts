import { setTimeout as sleep } from 'node:timers/promises'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Job, JobEnd } from '../../shared/work/queue/port.ts'

/** How a job ended; `undefined` while its work continues. */
export type Settled = { end: JobEnd | undefined } | undefined

const LOOK_EVERY_MS = 1_000

/**
 * Keeps the jobs of one kind until their work has ended, here or elsewhere. If this process dies earlier, the queue hands the job
 * to another executor.
 */
export class JobRetry {
  readonly #onFailure: (id: string, cause: unknown) => void
  /** The jobs that a handler of this process is at work on. */
  readonly #active = new Set<string>()

  /** `onFailure` is called when an attempt has failed; the attempt is repeated after a second. */
  constructor(onFailure: (id: string, cause: unknown) => void) {
    this.#onFailure = onFailure
  }

  /** Calls `settle` until it returns how the job ended. Never rejects. */
  async untilEnded(
    { tenant, id }: Job,
    settle: (tenant: TenantId, id: string) => Promise<Settled>,
  ): Promise<JobEnd | undefined> {
    for (;;) {
      const settled = await this.#once(id, () => settle(tenant, id))
      if (settled) return settled.end
      await sleep(LOOK_EVERY_MS)
    }
  }

  async #once(id: string, settle: () => Promise<Settled>): Promise<Settled> {
    if (this.#active.has(id)) return undefined // The queue has handed the job out again while its first handler still works.
    this.#active.add(id)
    try {
      return await settle()
    } catch (cause) {
      this.#onFailure(id, cause)
      return undefined
    } finally {
      this.#active.delete(id)
    }
  }
}

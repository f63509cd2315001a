import { callersPatienceMs, withDeadline } from '../../shared/kernel/async/deadline.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { storeUnavailable } from '../../shared/platform/store/unavailable.ts'

/** Runs that wait until their tenant's models are loaded. They do not exist yet, but can be cancelled. */
export class LoadingRuns<T> {
  readonly #waiting = new Set<string>()

  /**
   * Calls `open` now, or when `loading` has ended. Rejects as `loading` does, when the run was cancelled meanwhile, and when `loading` takes longer than the
   * caller waits.
   */
  open(
    tenant: TenantId,
    runId: string,
    { loading, open }: { loading: Promise<T> | undefined; open: (loaded?: T) => void },
  ) {
    return loading === undefined ? open() : this.#openLater(keyOf(tenant, runId), loading, open)
  }

  /** Returns whether the run was waiting; if so, it will not be opened. */
  cancel(tenant: TenantId, runId: string): boolean {
    return this.#waiting.delete(keyOf(tenant, runId))
  }

  async #openLater(key: string, loading: Promise<T>, open: (loaded: T) => void): Promise<void> {
    this.#waiting.add(key)
    let loaded: T
    try {
      loaded = await withDeadline(loading, callersPatienceMs(), () => storeUnavailable('too slow'))
    } catch (cause) {
      this.#waiting.delete(key)
      throw cause
    }
    if (!this.#waiting.delete(key)) throw new AppError('unavailable', 'the run was cancelled before it began')
    open(loaded)
  }
}

/** Unique, because neither id contains a blank. */
const keyOf = (tenant: TenantId, runId: string): string => `${tenant} ${runId}`

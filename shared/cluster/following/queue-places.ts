import type { TenantId } from '../../kernel/tenant.ts'
import {
  type Run,
  type RunHabits,
  type RunPlaces,
  type RunProcesses,
  type RunState,
  type SourceState,
  UNKNOWN,
} from './port.ts'

/** Finds runs that were queued for an executor (`isQueuedRun`). Every method throws `unavailable` when the store is away. */
export interface QueuedRunSource {
  /**
   * The state of a run that this process queued a moment ago, without reading the store, for the first caller only. The run may have begun since:
   * only a caller that also gets its start notice may use it.
   */
  takeCreated?(tenant: TenantId, runId: string): SourceState | undefined
  /** `undefined` for an unknown run and for another tenant's. */
  find(tenant: TenantId, runId: string): Promise<SourceState | undefined>
  /**
   * Ends a run that waits for an executor: a queued one, or with `lost` one that may move, whose executor of this epoch is dead. Returns `false`
   * when it no longer waits. Left out: such a run cannot be cancelled.
   */
  cancelWaiting?(tenant: TenantId, runId: string, lost?: number): Promise<boolean>
}

/** How often a stream looks for its run that is started again, and how long it waits for that. */
const RETRY_MS = 200
const MOVES_WITHIN_MS = 15_000

/** Finds queued runs. Their ids contain neither their place nor their source, so each source is asked in turn. */
export class QueuePlaces implements RunPlaces {
  readonly #sources: readonly QueuedRunSource[]
  readonly #processes: Pick<RunProcesses, 'isAlive'>
  readonly habits: RunHabits

  constructor(
    sources: readonly QueuedRunSource[],
    processes: Pick<RunProcesses, 'isAlive'>,
    habits?: Partial<RunHabits>,
  ) {
    this.#sources = sources
    this.#processes = processes
    this.habits = {
      isNamedEarly: true,
      mayMoveBegun: true,
      movesWithinMs: MOVES_WITHIN_MS,
      retryMs: RETRY_MS,
      ...habits,
    }
  }

  async find(run: Run, isNew = false): Promise<RunState> {
    // A run that was just queued is not read from the store: if it has begun, a start notice says so.
    const stored = (isNew && this.#created(run)) || (await this.#stored(run))
    if (!stored) return UNKNOWN
    const epoch = stored.state === 'waiting' ? null : stored.epoch
    return epoch === null || (await this.#processes.isAlive(epoch)) ? stored : afterDeath(stored)
  }

  async findNext(run: Run, from: number | null): Promise<RunState> {
    const stored = await this.#stored(run)
    if (stored?.state !== 'at') return stored ?? UNKNOWN
    const isAlive = await this.#processes.isAlive(stored.epoch).catch(() => false)
    if (!isAlive) return afterDeath(stored)
    return stored.epoch === from ? UNKNOWN : stored
  }

  async cancelWaiting({ tenant, runId }: Run, lost: number | undefined): Promise<boolean> {
    for (const source of this.#sources) if (await source.cancelWaiting?.(tenant, runId, lost)) return true
    return false
  }

  #created({ tenant, runId }: Run): SourceState | undefined {
    for (const source of this.#sources) {
      const created = source.takeCreated?.(tenant, runId)
      if (created) return created
    }
    return undefined
  }

  async #stored({ tenant, runId }: Run): Promise<SourceState | undefined> {
    for (const source of this.#sources) {
      const found = await source.find(tenant, runId)
      if (found) return found
    }
    return undefined
  }
}

/** Where a run is whose executor is dead. */
const afterDeath = (stored: SourceState): RunState =>
  stored.state === 'at' && stored.mayMove ? { state: 'moving', epoch: stored.epoch, ...stored.mayMove } : UNKNOWN

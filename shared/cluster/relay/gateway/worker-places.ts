import { epochOfRun } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { type Run, type RunHabits, type RunPlaces, type RunState, UNKNOWN } from '../../following/port.ts'
import type { Workers } from '../../members/workers.ts'
import type { MovedRuns } from '../../owners/owners.ts'
import type { RunRecovery } from './run-recovery.ts'

export type WorkerPlacesDeps = {
  workers: Pick<Workers, 'isAlive'>
  movedRuns: Pick<MovedRuns, 'find'>
  /** Finds the runs of dead workers that other workers continue. Left out: they are lost. */
  recovery: Pick<RunRecovery, 'find' | 'stopped'> | undefined
}

/** How long a broken stream may take to continue elsewhere: the worker that opens the session may die, too. */
const MOVES_WITHIN_MS = 30_000
const RETRY_MS = 250
/** How long a run whose worker is gone is searched before it is assumed to continue. */
const LOST_WITHIN_MS = 500
/** How long a run is searched elsewhere when its worker does not answer: the worker may have died without anyone knowing yet. */
const CANCELS_WITHIN_MS = 10_000

/** Finds the runs of workers. A run's id contains its place, unless the run has moved with its session. */
export class WorkerPlaces implements RunPlaces {
  readonly #deps: WorkerPlacesDeps
  readonly habits: RunHabits

  constructor(deps: WorkerPlacesDeps) {
    const { recovery } = deps
    this.#deps = deps
    this.habits = {
      mayMoveBegun: recovery !== undefined,
      movesWithinMs: MOVES_WITHIN_MS,
      retryMs: RETRY_MS,
      ...(recovery && { cancelsWithinMs: CANCELS_WITHIN_MS, stopped: recovery.stopped }),
    }
  }

  async find({ runId }: Run): Promise<RunState> {
    return { state: 'at', epoch: epochOfRun(runId) }
  }

  async findNext({ tenant, runId }: Run, from: number, withinMs?: number): Promise<RunState> {
    const { recovery, movedRuns } = this.#deps
    const epoch = recovery
      ? await recovery.find(tenant, runId, from, withinMs && Math.max(LOST_WITHIN_MS, withinMs))
      : await movedRuns.find(tenant, runId)
    return epoch === undefined || epoch === from ? UNKNOWN : { state: 'at', epoch }
  }

  /** Whether the worker of this run is a member: the one that the run's id names, or the one that it has moved to. */
  async isWorkerAlive(tenant: TenantId, runId: string): Promise<boolean> {
    const { workers, movedRuns } = this.#deps
    if (workers.isAlive(epochOfRun(runId))) return true
    const moved = await movedRuns.find(tenant, runId)
    return moved !== undefined && workers.isAlive(moved)
  }

  /** Whether the run was lost with its worker and no other continues it. `false` as long as that is not known. */
  async isLost(tenant: TenantId, runId: string): Promise<boolean> {
    if (await this.isWorkerAlive(tenant, runId)) return false
    if (!this.#deps.recovery) return true
    const next = this.findNext({ tenant, runId }, epochOfRun(runId), LOST_WITHIN_MS)
    return next.then(
      ({ state }) => state === 'unknown',
      () => false,
    )
  }
}

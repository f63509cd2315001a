import { epochOfRun } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { type Run, type RunHabits, type RunPlaces, type RunState, UNKNOWN } from '../../following/port.ts'
import type { Workers } from '../../members/workers.ts'
import type { MovedRuns } from '../../owners/owners.ts'
import type { RunRecovery } from './run-recovery.ts'

export type WorkerPlacesDeps = {
  workers: Pick<Workers, 'isAlive'>
  movedRuns: Pick<MovedRuns, 'find'>
  /** Finds the runs of dead workers that others go on with. Left out: they are lost. */
  recovery: Pick<RunRecovery, 'find' | 'stopped'> | undefined
}

/** How long a stream that broke off may take to go on elsewhere: the worker that opens the session may die, too. */
const MOVES_WITHIN_MS = 30_000
const RETRY_MS = 250
/** How long it is looked for a run whose worker is gone, before it counts as one that goes on. */
const LOST_WITHIN_MS = 500
/** How long a run may take to be found elsewhere whose worker does not answer: it may have died, and others do not know yet. */
const CANCELS_WITHIN_MS = 10_000

/** The places of the runs of workers, whose ids say where they are, unless they have moved with their session. */
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

  /** Whether the run has died with its worker, and no other goes on with it. While that is not known it is not lost. */
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

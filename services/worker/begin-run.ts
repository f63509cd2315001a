import type { ClientTool } from '../../shared/agent/tools/client-tools.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import { callersPatienceMs, withDeadline } from '../../shared/kernel/async/deadline.ts'
import { LoopBudget } from '../../shared/kernel/async/loop-budget.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { storeUnavailable } from '../../shared/platform/store/unavailable.ts'
import { type Admission, startOf } from '../../shared/tenancy/limits/admission.ts'
import type { StartWait } from '../../shared/tenancy/limits/start-lines.ts'
import type { ModelSource } from '../../shared/work/runs/models.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import { type Choices, type ChoicesDeps, checkChoices, checkFiles, type FileDeps } from './check-choices.ts'

/** The parts that check a start before its run is opened. */
export type StartChecks = ChoicesDeps &
  Pick<FileDeps, 'probes'> & {
    models: FileDeps['models'] & Pick<ModelSource, 'load'>
    admission: Admission
  }

/**
 * How long runs are started in one turn of the event loop. Further starts wait in their order, so that the streams of
 * running runs are served meanwhile.
 */
const STARTS_MS = 4

type Starting = {
  runId: string
  request: Choices & RunRequest
  kept?: readonly ClientTool[] | undefined
}

/**
 * Returns the function that opens a run as soon as its choices are checked, its tenant's models are loaded and its limits allow it. The run
 * keeps its place in the limits until it ends.
 */
export function createBegin(options: StartChecks, loadingRuns: LoadingRuns<StartWait | undefined>) {
  const { models, admission } = options
  const starts = new LoopBudget(STARTS_MS)
  const admit = (tenant: TenantId, { runId, request, kept }: Starting) => {
    const checked = checkChoices(tenant, { ...request, kept }, options)
    const loading = checked ? checked.then(() => models.load(tenant)) : models.load(tenant)
    const taken = request.files ? Promise.resolve(loading).then(() => checkFiles(tenant, request, options)) : loading
    const start = startOf({ tenant, runId }, request)
    return taken ? taken.then(() => admission.admit(start)) : admission.admit(start)
  }
  return (tenant: TenantId, { runId, ...request }: Starting, open: (wait?: StartWait) => Run): Promise<void> | void => {
    const turn = starts.enter()
    const loading = turn ? turn.then(() => admit(tenant, { runId, ...request })) : admit(tenant, { runId, ...request })
    const opening = loadingRuns.open(tenant, runId, {
      loading,
      open(wait) {
        const run = open(wait)
        admission.hold(startOf({ tenant, runId }, request.request), run.ended, wait)
      },
    })
    return opening?.catch((cause: unknown) => {
      void loading?.then(
        (wait) => wait?.leave(),
        () => {},
      )
      admission.release(startOf({ tenant, runId }, request.request))
      throw cause
    })
  }
}

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

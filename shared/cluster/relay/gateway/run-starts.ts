import { AppError, hasKind } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { isStoreUnavailable } from '../../../platform/store/unavailable.ts'
import type { OnNamed, OpenedRun } from '../../commands/broker.ts'
import type { RunRequest } from '../../commands/runs.ts'
import { lessLoadedOfTwo, type Workers } from '../../members/workers.ts'
import { isUnanswered, noWorker } from '../../owners/session-router.ts'
import type { Membership } from '../membership.ts'
import type { RelayedStreams } from '../streams/relayed-streams.ts'
import { ACCEPT_MS, type Callee, createRunId, type WorkerCalls } from './worker-calls.ts'
import type { WorkerPlaces } from './worker-places.ts'

/** How long workers are tried one after another. */
const START_MS = 2_000
/** How long a worker may be silent before another is tried; a worker that reports progress is not abandoned. */
const TRY_MS = 500
/** With less time left than this no further worker is tried. */
const MIN_TRY_MS = 100
const TRY_ANOTHER = new Set(['rate_limit', 'unavailable'])

export type RunStartsDeps = {
  workers: Pick<Workers, 'eligible' | 'ownerOf'>
  calls: Pick<WorkerCalls, 'call' | 'callInBackground'>
  streams: Pick<RelayedStreams, 'openNew' | 'accept'>
  membership: Pick<Membership, 'refreshMembers'>
  places: Pick<WorkerPlaces, 'findNext'>
  isBusAway(): boolean
}

/** A run that is being opened, by the id that the gateway has chosen for it. `isSessionKept`: its session outlives its worker (D32). */
type NewRun = { tenant: TenantId; runId: string; epoch: number; isSessionKept?: boolean }

const NOT_ACCEPTED = { isAccepted: false } as const

type NamedRun = { tenant: TenantId; runId: string; request: RunRequest }

/** Starts runs on workers. */
export class RunStarts {
  readonly #deps: RunStartsDeps
  #isClosing = false

  constructor(deps: RunStartsDeps) {
    this.#deps = deps
  }

  /** Refuses to open further streams. */
  close(): void {
    this.#isClosing = true
  }

  refuseIfClosing(): void {
    if (!this.#isClosing) return
    throw new AppError('unavailable', 'this server is shutting down; send the request again', { retryAfterSecs: 1 })
  }

  /** Lists the members again while no worker is known, since one may have just joined. Requests share a listing. */
  async findWorkers(): Promise<void> {
    const { workers, membership, isBusAway } = this.#deps
    if (workers.eligible.length > 0 || isBusAway()) return
    await membership.refreshMembers()
  }

  /**
   * Tries one worker after another until one accepts, the time is over, or the failure comes from the store and not the worker. A customer's run is
   * tried first on the worker that the customer hashes to; any other is tried on the less loaded of two.
   */
  async start(tenant: TenantId, request: RunRequest, onNamed?: OnNamed): Promise<OpenedRun> {
    const until = performance.now() + START_MS
    await this.findWorkers()
    const { workers } = this.#deps
    const home = request.customer_id && workers.ownerOf(`${tenant} ${request.customer_id}`)
    let left = [...workers.eligible]
    let refusal: unknown = noWorker()
    while (left.length > 0) {
      const worker = left.find((member) => member.epoch === home) ?? lessLoadedOfTwo(left, Math.random)
      if (!worker) break
      const { epoch } = worker
      left = left.filter((other) => other.epoch !== epoch)
      const deadlineMs = Math.min(ACCEPT_MS, until - performance.now())
      const silentMs = left.length > 0 ? Math.min(TRY_MS, deadlineMs) : deadlineMs
      worker.load++ // Counted before the worker has answered; otherwise the requests of a burst would all see the same load.
      try {
        const runId = createRunId(epoch)
        await onNamed?.(runId)
        return await this.#startOn({ epoch, hasAlternative: true, deadlineMs, silentMs }, { tenant, runId, request })
      } catch (cause) {
        worker.load--
        if (!this.#canTryAnother(cause, until)) throw cause
        refusal = cause
      }
    }
    throw refusal
  }

  /**
   * Opens a stream and then the run, which begins when it is accepted here. A run that is not accepted is withdrawn (D36.1): its worker may have it
   * all the same, or have handed it over with its session.
   */
  async open(
    { tenant, runId, epoch, isSessionKept = false }: NewRun,
    start: (stream: number) => Promise<void>,
  ): Promise<OpenedRun> {
    this.refuseIfClosing()
    const { streams } = this.#deps
    const { number, stream } = streams.openNew(epoch)
    if (isSessionKept) stream.keepSession()
    try {
      await start(number)
      streams.accept(number)
      return { runId, frames: stream }
    } catch (cause) {
      await stream.return()
      if (isUnanswered(cause) || hasKind(cause, 'not_found')) this.#takeBack({ tenant, runId, epoch })
      throw cause
    }
  }

  #takeBack({ tenant, runId, epoch }: NewRun): void {
    const { calls, places } = this.#deps
    const takeBackElsewhere = async () => {
      // If this fails, no gateway follows the run, so it does not begin.
      const next = await places.findNext({ tenant, runId }, epoch).catch(() => undefined)
      if (next?.state === 'at') calls.callInBackground(next.epoch, 'cancelRun', [tenant, runId, NOT_ACCEPTED])
    }
    calls.callInBackground(epoch, 'cancelRun', [tenant, runId, NOT_ACCEPTED], () => void takeBackElsewhere())
  }

  #startOn(callee: Callee, { tenant, runId, request }: NamedRun): Promise<OpenedRun> {
    return this.open({ tenant, runId, epoch: callee.epoch }, (stream) =>
      this.#deps.calls.call(callee, 'startRun', [tenant, runId, request, stream]),
    )
  }

  #canTryAnother(cause: unknown, until: number): boolean {
    if (this.#isClosing || this.#deps.isBusAway() || performance.now() > until - MIN_TRY_MS) return false
    return cause instanceof AppError && TRY_ANOTHER.has(cause.kind) && !isStoreUnavailable(cause)
  }
}

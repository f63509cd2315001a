import { retryUntil } from '../../kernel/async/retry.ts'
import { hasKind } from '../../kernel/errors.ts'
import type { Steer } from '../../kernel/events.ts'
import { epochOfRun, newId } from '../../kernel/ids.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { RunSummary } from '../commands/runs.ts'
import type { FrameStream } from '../journal/frame-stream.ts'
import type { Executors } from '../members/executors.ts'
import type { Workers } from '../members/workers.ts'
import type { MovedRuns } from '../owners/moved-runs.ts'
import { isUnanswered } from '../owners/session-router.ts'
import type { ExecutorCalls, RunPlace } from '../queued-runs/executor-calls.ts'
import { MovableStream } from '../queued-runs/movable-stream.ts'
import { noRun, type RunAccess } from '../queued-runs/queued-runs.ts'
import type { RunRecovery } from './run-recovery.ts'
import type { RelayedStream } from './streams/relayed-stream.ts'
import type { RelayedStreams } from './streams/relayed-streams.ts'
import type { CallArgs, CallResult } from './wire/calls.ts'
import type { WorkerCalls } from './worker-calls.ts'

export type RunCallsDeps = {
  workers: Pick<Workers, 'isAlive'>
  executors: Pick<Executors, 'isAlive'>
  calls: Pick<WorkerCalls, 'call' | 'isWorkerLost'>
  streams: Pick<RelayedStreams, 'open'>
  movedRuns: Pick<MovedRuns, 'find'>
  /** Finds the runs of dead workers that others go on with. Left out: they are lost. */
  recovery?: Pick<RunRecovery, 'find' | 'stopped'> | undefined
  /** Whether sessions outlive their worker (D32). */
  areSessionsKept: boolean
  /** Lists the members again if this epoch is unknown, since it may have just joined. */
  discover(epoch: number): Promise<void>
}

type RunMethod = 'getRun' | 'followRun' | 'cancelRun' | 'steerRun' | 'listFiles' | 'readFile'
type Followed = { epoch: number; frames: FrameStream }

/** How long a stream that broke off may take to go on elsewhere: the worker that opens the session may die, too. */
const MOVES_WITHIN_MS = 30_000
const RETRY_MS = 250
/** How long it is looked for a run whose worker is gone, before it counts as one that goes on. */
const LOST_WITHIN_MS = 500
/** How long a run may take to be found elsewhere whose worker does not answer: it may have died, and others do not know yet. */
const ANSWERED_WITHIN_MS = 10_000

/** Contains the worker's epoch, so that every gateway finds the worker without asking Redis. */
export const createRunId = (epoch: number): string =>
  `run_${epoch.toString(16).padStart(8, '0')}${newId('run').slice(-24)}`

/** Calls the worker or executor that has a run. The run of one that is not alive is unknown. */
export class RunCalls implements ExecutorCalls {
  readonly #deps: RunCallsDeps

  constructor(deps: RunCallsDeps) {
    this.#deps = deps
  }

  /** The runs whose ids say where they are, unless they have moved with their session. */
  readonly onWorkers: RunAccess = {
    getRun: (tenant, runId) => this.#find(placeOf(tenant, runId), (place) => this.getRun(place)),
    followRun: (tenant, runId, after) =>
      this.#find(placeOf(tenant, runId), async (place) => this.movable(place, await this.followRun(place, after))),
    cancelRun: (tenant, runId) =>
      this.#untilAnswered((until) => this.#find(placeOf(tenant, runId), (place) => this.cancelRun(place), until)),
  }

  steerRun(tenant: TenantId, runId: string, steer: Steer): Promise<void> {
    const act = (place: RunPlace) => this.#call(place, 'steerRun', [tenant, runId, steer])
    return this.#untilAnswered((until) => this.#find(placeOf(tenant, runId), act, until))
  }

  /** Calls a method where the run is. */
  atRun<M extends RunMethod>(tenant: TenantId, runId: string, method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    return this.#find(placeOf(tenant, runId), (place) => this.#call(place, method, args))
  }

  /**
   * The same stream, which goes on at another worker when the run moves there: before it begins, or with DURABILITY=runs at any time. `isOfSession`:
   * the run is known to be one of a session's message.
   */
  movable(place: RunPlace, frames: FrameStream, isOfSession = false): FrameStream {
    let { epoch } = place
    const followElsewhere = async (after: number) => {
      const followed = await this.#followMoved({ ...place, epoch }, after, isOfSession)
      if (followed) epoch = followed.epoch
      return followed?.frames
    }
    return new MovableStream(frames, followElsewhere, this.#deps.recovery !== undefined)
  }

  /**
   * Follows a run whose stream broke off here where it is now, at the next worker when that one dies, too. `undefined` when it is nowhere else.
   * Throws when it cannot be followed within the time.
   */
  #followMoved(broken: RunPlace, after: number, isOfSession: boolean): Promise<Followed | undefined> {
    const until = performance.now() + MOVES_WITHIN_MS
    const signal = this.#deps.recovery?.stopped
    let from = broken.epoch
    const follow = async (): Promise<Followed | undefined> => {
      const place = { ...broken, epoch: from }
      const epoch = await this.#whereNow(place, until - performance.now())
      if (epoch === undefined || epoch === from) return undefined
      try {
        return { epoch, frames: await this.#follow({ ...place, epoch }, after, isOfSession) }
      } catch (cause) {
        if (hasKind(cause, 'not_found')) from = epoch
        throw cause
      }
    }
    return retryUntil(follow, { pauses: RETRY_MS, until, ref: false, ...(signal && { signal }) })
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
    const { recovery } = this.#deps
    const where = async () => recovery?.find(tenant, runId, epochOfRun(runId), LOST_WITHIN_MS)
    return (
      !recovery ||
      (await where().then(
        (epoch) => epoch === undefined,
        () => false,
      ))
    )
  }

  /** Whether the worker or executor of this epoch is a member. */
  async isAlive(epoch: number): Promise<boolean> {
    if (this.#isKnown(epoch)) return true
    await this.#deps.discover(epoch)
    return this.#isKnown(epoch)
  }

  getRun(place: RunPlace) {
    return this.#call(place, 'getRun', [place.tenant, place.runId])
  }

  /** The worker answers once the run is aborted. The run exists nowhere else, so nothing about the cancellation can be lost later. */
  cancelRun(place: RunPlace) {
    return this.#call(place, 'cancelRun', [place.tenant, place.runId])
  }

  followRun(place: RunPlace, after: number): Promise<FrameStream> {
    return this.#follow(place, after, false)
  }

  async #follow(place: RunPlace, after: number, isOfSession: boolean): Promise<FrameStream> {
    const { epoch, tenant, runId } = place
    const { number, stream } = this.#deps.streams.open(epoch, after)
    try {
      const startsAfter: number | null = await this.#call(place, 'followRun', [tenant, runId, after, number])
      stream.startAfter(startsAfter ?? after) // A worker of an older release answers null.
      if (isOfSession) stream.keepSession()
      else if (this.#deps.areSessionsKept) this.#noteSession(place, stream)
      return stream
    } catch (cause) {
      await stream.return()
      throw cause
    }
  }

  /** Nobody waits for it: a stream that breaks off before the answer comes only says less. */
  #noteSession(place: RunPlace, stream: Pick<RelayedStream, 'keepSession'>): void {
    const note = ({ session_id: id }: RunSummary) => void (id !== undefined && stream.keepSession())
    this.getRun(place).then(note, () => {})
  }

  /**
   * Looks for the run at its first worker, then where it has moved, and on: the worker that it has moved to may die meanwhile. Who waits until a
   * time of its own waits no longer for the run to be found.
   */
  async #find<T>(place: RunPlace, act: (place: RunPlace) => Promise<T>, until?: number): Promise<T> {
    let { epoch } = place
    for (;;) {
      try {
        return await act({ ...place, epoch })
      } catch (cause) {
        if (!hasKind(cause, 'not_found')) throw cause
        const withinMs = until === undefined ? undefined : Math.max(LOST_WITHIN_MS, until - performance.now())
        const next = await this.#whereNow({ ...place, epoch }, withinMs)
        if (next === undefined || next === epoch) throw cause
        epoch = next
      }
    }
  }

  /** A worker that does not answer may have died: once that is known another one goes on with the run, and does what is asked (D37.3). */
  #untilAnswered<T>(act: (until?: number) => Promise<T>): Promise<T> {
    const { recovery } = this.#deps
    if (!recovery) return act()
    const until = performance.now() + ANSWERED_WITHIN_MS
    return retryUntil(() => act(until), {
      pauses: RETRY_MS,
      mayPass: isUnanswered,
      until,
      ref: false,
      signal: recovery.stopped,
    })
  }

  #whereNow({ tenant, runId, epoch }: RunPlace, withinMs?: number): Promise<number | undefined> {
    const { recovery, movedRuns } = this.#deps
    return recovery ? recovery.find(tenant, runId, epoch, withinMs) : movedRuns.find(tenant, runId)
  }

  async #call<M extends RunMethod>({ epoch, runId }: RunPlace, method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    if (!(await this.isAlive(epoch))) throw noRun(runId)
    const { calls } = this.#deps
    try {
      return await calls.call({ epoch }, method, args)
    } catch (cause) {
      throw calls.isWorkerLost(epoch, cause) ? noRun(runId) : cause
    }
  }

  #isKnown(epoch: number): boolean {
    return this.#deps.workers.isAlive(epoch) || this.#deps.executors.isAlive(epoch)
  }
}

const placeOf = (tenant: TenantId, runId: string): RunPlace => ({ epoch: epochOfRun(runId), tenant, runId })

import { AppError, hasKind } from '../../../kernel/errors.ts'
import { newId } from '../../../kernel/ids.ts'
import type { RunSummary } from '../../commands/runs.ts'
import type { RunPlace, RunProcesses } from '../../following/port.ts'
import { noRun } from '../../following/run-finder.ts'
import type { FrameStream } from '../../journal/frame-stream.ts'
import { isUnanswered } from '../../owners/session-router.ts'
import type { RelayedStream } from '../streams/relayed-stream.ts'
import type { RelayedStreams } from '../streams/relayed-streams.ts'
import { type CallArgs, type CallRequest, type CallResult, Calls, packCall, type WorkerMethod } from '../wire/calls.ts'
import { RECORD, record, type WireRecord } from '../wire/records.ts'

export type WorkerCallsDeps = {
  /** Whether this worker or executor is a member. */
  isAlive(epoch: number): boolean
  /** Sends to the worker or executor of this epoch. */
  send(epoch: number, each: WireRecord): void
  isBusAway(): boolean
}

/** The worker to call, and how to wait for its answer. */
export type Callee = {
  epoch: number
  /** Set when another worker can be called instead: the call fails at once if this worker's channel has no subscriber. */
  hasAlternative?: boolean
  deadlineMs?: number
  /** The call fails after this time if the worker does not even confirm that it is working on it. */
  silentMs?: number
}

/** How long a client may wait until its request is accepted. */
export const ACCEPT_MS = 1_000
const BACKGROUND_MS = 10_000

/** The calls that a gateway makes to workers and executors. */
export class WorkerCalls {
  readonly #deps: WorkerCallsDeps
  /** The calls that have no answer yet. */
  readonly pending = new Calls()

  constructor(deps: WorkerCallsDeps) {
    this.#deps = deps
  }

  /** Throws the worker's refusal; `unavailable` when it does not answer, and at once while the bus is away. */
  async call<M extends WorkerMethod>(callee: Callee, method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    if (this.#deps.isBusAway()) throw busAway()
    const { epoch, hasAlternative = false, deadlineMs = ACCEPT_MS, silentMs = deadlineMs } = callee
    const request = { ...this.#request(epoch, method, args), hasAlternative, limits: { deadlineMs, silentMs } }
    return (await this.pending.call(request)) as CallResult<M>
  }

  /**
   * Makes a call and ignores its outcome. While the bus is away it is repeated for 10 s. `onElsewhere` is called when the worker is gone, or does not
   * know the run or session of the call.
   */
  callInBackground<M extends WorkerMethod>(
    epoch: number,
    method: M,
    args: CallArgs<M>,
    onElsewhere: () => void = () => {},
  ): void {
    const request = { ...this.#request(epoch, method, args), limits: { deadlineMs: BACKGROUND_MS } }
    this.pending.call(request).catch((cause: unknown) => {
      if (isUnanswered(cause) || hasKind(cause, 'not_found')) onElsewhere() // Any other error means that the worker has already done it.
    })
  }

  /** Whether a call failed because its worker is no longer a member. */
  isWorkerLost(epoch: number, cause: unknown): boolean {
    return isUnanswered(cause) && !this.#deps.isAlive(epoch)
  }

  #request<M extends WorkerMethod>(epoch: number, method: M, args: CallArgs<M>): CallRequest {
    const send = (id: number, withinMs: number) =>
      this.#deps.send(epoch, record(RECORD.call, { stream: id, body: packCall(method, args, withinMs) }))
    return { epoch, send }
  }
}

const busAway = () =>
  new AppError('unavailable', 'the cluster cannot be reached at the moment; try again', { retryAfterSecs: 2 })

export type RunCallsDeps = {
  /** Whether the worker or executor of this epoch is known. */
  isKnown(epoch: number): boolean
  /** Lists the members again if this epoch is unknown, since it may have just joined. */
  discover(epoch: number): Promise<void>
  calls: Pick<WorkerCalls, 'call' | 'isWorkerLost'>
  streams: Pick<RelayedStreams, 'open'>
  /** Whether sessions outlive their worker (D32). */
  areSessionsKept: boolean
}

type RunMethod = 'getRun' | 'followRun' | 'cancelRun' | 'steerRun' | 'listFiles' | 'readFile'

/** Contains the worker's epoch, so that every gateway finds the worker without asking Redis. */
export const createRunId = (epoch: number): string =>
  `run_${epoch.toString(16).padStart(8, '0')}${newId('run').slice(-24)}`

/** Calls the worker or executor that has a run. The run of a dead process is unknown. */
export class RunCalls implements RunProcesses {
  readonly #deps: RunCallsDeps

  constructor(deps: RunCallsDeps) {
    this.#deps = deps
  }

  async isAlive(epoch: number): Promise<boolean> {
    const { isKnown, discover } = this.#deps
    if (isKnown(epoch)) return true
    await discover(epoch)
    return isKnown(epoch)
  }

  getRun(place: RunPlace) {
    return this.call(place, 'getRun', [place.tenant, place.runId])
  }

  /** The worker answers once the run is aborted. The run exists nowhere else, so nothing about the cancellation can be lost later. */
  cancelRun(place: RunPlace) {
    return this.call(place, 'cancelRun', [place.tenant, place.runId])
  }

  async followRun(place: RunPlace, after: number): Promise<FrameStream> {
    const { epoch, tenant, runId, isOfSession } = place
    const { number, stream } = this.#deps.streams.open(epoch, after)
    try {
      const startsAfter: number | null = await this.call(place, 'followRun', [tenant, runId, after, number])
      stream.startAfter(startsAfter ?? after) // A worker of an older release answers null.
      if (isOfSession) stream.keepSession()
      else if (this.#deps.areSessionsKept) this.#noteSession(place, stream)
      return stream
    } catch (cause) {
      await stream.return()
      throw cause
    }
  }

  /** Not awaited: if the stream breaks off before the answer comes, its last event only has less information. */
  #noteSession(place: RunPlace, stream: Pick<RelayedStream, 'keepSession'>): void {
    const note = ({ session_id: id }: RunSummary) => void (id !== undefined && stream.keepSession())
    this.getRun(place).then(note, () => {})
  }

  async call<M extends RunMethod>({ epoch, runId }: RunPlace, method: M, args: CallArgs<M>): Promise<CallResult<M>> {
    if (!(await this.isAlive(epoch))) throw noRun(runId)
    const { calls } = this.#deps
    try {
      return await calls.call({ epoch }, method, args)
    } catch (cause) {
      throw calls.isWorkerLost(epoch, cause) ? noRun(runId) : cause
    }
  }
}

import { AppError, hasKind } from '../../../kernel/errors.ts'
import { isUnanswered } from '../../owners/session-router.ts'
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
  /** Another worker can be called instead: the call fails at once when no process has subscribed to this one's channel. */
  hasAlternative?: boolean
  deadlineMs?: number
  /** The call fails this early when the worker does not even say that it carries the call out. */
  silentMs?: number
}

/** How long a client may wait until its request is accepted. */
export const ACCEPT_MS = 1_000
const BACKGROUND_MS = 10_000

/** The calls that a gateway makes to workers and executors. */
export class WorkerCalls {
  readonly #deps: WorkerCallsDeps
  /** Those that have no answer yet. */
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
   * Makes a call and ignores its outcome. While the bus is away it is repeated for 10 s. `onElsewhere` is called when the worker is gone, or does not know
   * what the call names.
   */
  callInBackground<M extends WorkerMethod>(
    epoch: number,
    method: M,
    args: CallArgs<M>,
    onElsewhere: () => void = () => {},
  ): void {
    const request = { ...this.#request(epoch, method, args), limits: { deadlineMs: BACKGROUND_MS } }
    this.pending.call(request).catch((cause: unknown) => {
      if (isUnanswered(cause) || hasKind(cause, 'not_found')) onElsewhere() // Else the worker has already done it.
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

import { setTimeout as sleep } from 'node:timers/promises'
import { shownProblems } from '../../../agent/engine/answers/output.ts'
import type { Broker } from '../../../cluster/commands/broker.ts'
import type { FollowedRun } from '../../../cluster/following/followed-run.ts'
import type { FrameStream, Frames } from '../../../cluster/journal/frame-stream.ts'
import { AppError, toAppError } from '../../../kernel/errors.ts'
import type { FlowAnswer, FlowFailure } from '../../../kernel/events.ts'
import { newTraceId, runIdOf } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Idempotency } from '../../../platform/store/idempotency.ts'
import type { Admission } from '../../../tenancy/limits/admission.ts'
import type { JobQueue } from '../../queue/port.ts'
import { watch } from '../../queue/watch.ts'
import { answerIn, errorOf, storedAnswer, terminalFrame } from '../execute/outcome.ts'
import type { Dispatch, Dispatches, FlowRef } from '../port.ts'
import type { StoredFlows } from '../stored-flows.ts'
import type { Execution } from '../transitions.ts'
import { createAges, settle } from './end-lost-execution.ts'
import { startOnce } from './once.ts'
import { clientLeft, closeExecution, type StartDeps, startExecution } from './start-execution.ts'

export type FlowCallsDeps = StartDeps & {
  library: Pick<StoredFlows, 'published' | 'definitionOf'>
  dispatches: Dispatches
  admission: Pick<Admission, 'admit' | 'release' | 'isWaiting'>
  idempotency: Idempotency
  queue: Pick<JobQueue, 'add' | 'remove'>
  broker: Pick<Broker, 'followRun' | 'expectRun'>
  /** The stored events of an execution that ended. */
  replay(tenant: TenantId, traceId: string): Promise<FrameStream>
  /** How long the events of an execution are searched; by default 10 s. */
  followWithinMs?: number
}

/** A request to run a flow, parsed by the route. */
export type FlowCall = Pick<Execution, 'request' | 'subject' | 'idempotencyKey' | 'readsEnd' | 'left' | 'onWait'>

/** An execution that this request has queued, or an earlier one that it joins (D6.6). */
export type StartedFlow = {
  traceId: string
  /** Whether an earlier request with the same Idempotency-Key started it. */
  isReplayed: boolean
  /** Waits for the end. Throws the failure of the execution as an HTTP error, and `signal`'s reason when it is aborted. */
  answer(signal: AbortSignal): Promise<FlowAnswer>
  /** The events from the first one to `result` or `error`. */
  frames(): Promise<FrameStream>
}

/** `flow` is known when this request has started the execution. */
type Started = Pick<StartedFlow, 'traceId' | 'isReplayed'> & { flow?: FlowRef }
/** `since` is when this process began to wait, on the clock of `performance.now()`. */
type Awaited = Started & { since: number }

const LOOK_EVERY_MS = 200
/** Twice the time after which an executor that does not answer is evicted. */
const FOLLOW_WITHIN_MS = 10_000

/** Runs flows for the API: refuses, queues, waits for the end and answers (api.md "Named flows"). */
export class FlowCalls {
  readonly #deps: FlowCallsDeps
  readonly #lostMs = createAges()

  constructor(deps: FlowCallsDeps) {
    this.#deps = deps
  }

  /**
   * Throws `not_found` unless the flow is published, or the requested version was; `invalid_request`; and `conflict`
   * for a key that another request has used.
   */
  async start(tenant: TenantId, name: string, call: FlowCall): Promise<StartedFlow> {
    const { library, idempotency, dispatches } = this.#deps
    const { idempotencyKey: key, request } = call
    if (key === undefined)
      return this.execute(tenant, {
        kind: 'run',
        flow: await library.published(tenant, name, request.version),
        ...call,
      })
    const found: { flow?: FlowRef } = {}
    const executionOf = async () => {
      const flow = await library.published(tenant, name, request.version)
      found.flow = flow
      return { execution: { kind: 'run', flow, ...call }, deps: this.#deps } as const
    }
    const execute = async (traceId: string) => startExecution(tenant, traceId, await executionOf())
    const close = async (traceId: string) => closeExecution(tenant, traceId, await executionOf())
    const find = (traceId: string) => dispatches.get(tenant, traceId)
    const isWaiting = (traceId: string) => this.#isWaiting(tenant, traceId, call)
    const start = { key, body: { flow: name, ...request }, find, isWaiting, execute, close }
    const started = await startOnce(tenant, start, idempotency)
    return this.#started(tenant, { ...started, ...(!started.isReplayed && found) })
  }

  /** While the places cannot be reached, a start stays in the queue (D54.6). */
  async #isWaiting(tenant: TenantId, traceId: string, { request, left, onWait }: FlowCall): Promise<boolean> {
    if (request.wait_secs === undefined) return false
    if (left?.aborted) throw clientLeft()
    const waits = await this.#deps.admission.isWaiting(tenant, runIdOf(traceId)).catch(() => true)
    if (waits) onWait?.({ traceId, wait: { standing: undefined } })
    return waits
  }

  /** Executes any version of a flow, published or not. */
  async execute(tenant: TenantId, execution: Execution): Promise<StartedFlow> {
    const traceId = newTraceId()
    await startExecution(tenant, traceId, { execution, deps: this.#deps })
    return this.#started(tenant, { traceId, isReplayed: false, flow: execution.flow })
  }

  #started(tenant: TenantId, started: Started): StartedFlow {
    const { traceId, isReplayed } = started
    const awaited = { ...started, since: performance.now() }
    return {
      traceId,
      isReplayed,
      answer: (signal) => this.#answer(tenant, awaited, signal),
      frames: () => this.#frames(tenant, awaited),
    }
  }

  /** The record of an execution that has ended; `undefined` while it is running. Throws when its record was lost. */
  async #ended(tenant: TenantId, { traceId, since }: Awaited): Promise<Dispatch | undefined> {
    const lostMs = (executor: number) => this.#lostMs(`${traceId} ${executor}`)
    const dispatch = await settle(tenant, traceId, { ...this.#deps, knownMs: performance.now() - since, lostMs })
    if (dispatch === undefined) throw errorOf(RECORD_LOST, traceId)
    return dispatch === 'running' ? undefined : dispatch
  }

  /** A process that does not answer is asked again until the execution has ended, or for as long as a silent executor stays a member. */
  async #frames(tenant: TenantId, awaited: Awaited): Promise<FrameStream> {
    const { traceId } = awaited
    const until = performance.now() + (this.#deps.followWithinMs ?? FOLLOW_WITHIN_MS)
    for (;;) {
      try {
        return await this.#watch(tenant, awaited)
      } catch (cause) {
        const { kind } = toAppError(cause)
        if (kind !== 'not_found' && kind !== 'unavailable') throw cause
        if (await this.#ended(tenant, awaited)) return this.#deps.replay(tenant, traceId)
        if (performance.now() > until) throw kind === 'not_found' ? notFollowed(traceId) : cause
        await sleep(LOOK_EVERY_MS)
      }
    }
  }

  async #watch(tenant: TenantId, awaited: Awaited): Promise<FollowedRun> {
    const stream = await this.#deps.broker.followRun(tenant, runIdOf(awaited.traceId), 0)
    return watch(stream, {
      after: 0,
      findEnd: async (lastSeq) => {
        const dispatch = await this.#ended(tenant, awaited)
        if (!dispatch) return undefined
        const text = terminalFrame(dispatch, await this.#deps.dispatches.output(tenant, dispatch), lastSeq)
        return { frames: { text, lastSeq } }
      },
    })
  }

  async #answer(tenant: TenantId, awaited: Awaited, signal: AbortSignal): Promise<FlowAnswer> {
    const { isReplayed, flow } = awaited
    let isExpectedToRun = !isReplayed
    for (;;) {
      const answer = isExpectedToRun ? await this.#waitForEnd(tenant, awaited, signal) : undefined
      signal.throwIfAborted()
      if (answer && flow) return this.#checked(tenant, answer, flow)
      const dispatch = await this.#ended(tenant, awaited)
      if (dispatch) return this.#answerOf(tenant, dispatch)
      if (isExpectedToRun) await sleep(LOOK_EVERY_MS) // The stream broke off before its end.
      isExpectedToRun = true
    }
  }

  /**
   * Resolves with the answer when the execution sends it, after it was stored. Otherwise with `undefined`: when it
   * has probably failed, when following it has failed, or when `signal` is aborted.
   */
  async #waitForEnd(tenant: TenantId, awaited: Awaited, signal: AbortSignal): Promise<FlowAnswer | undefined> {
    try {
      const run = await this.#watch(tenant, awaited)
      const leave = () => void run.return?.()
      signal.addEventListener('abort', leave, { once: true })
      if (signal.aborted) leave()
      let last: Frames | undefined
      for await (const frames of run) last = frames
      signal.removeEventListener('abort', leave)
      return last && answerIn(last)
    } catch {
      return undefined // The relay does not answer: the stored record shows when the execution has ended.
    }
  }

  async #answerOf(tenant: TenantId, dispatch: Dispatch): Promise<FlowAnswer> {
    const output = await this.#deps.dispatches.output(tenant, dispatch)
    return this.#checked(tenant, storedAnswer(dispatch, output), dispatch.flow)
  }

  /** The final check of the output (api.md "Named flows" 5). */
  async #checked(tenant: TenantId, answer: FlowAnswer, flow: FlowRef): Promise<FlowAnswer> {
    const { library, checkers } = this.#deps
    const definition = await library.definitionOf(tenant, flow)
    if (answer.verdict === 'invalid_output' || !definition) return answer
    const problems = shownProblems(await checkers.of(tenant).check(definition.output_schema, answer.output))
    return problems.length > 0 ? { ...answer, verdict: 'invalid_output', output: null, problems } : answer
  }
}

/** The error when an execution is running but cannot be found. */
const notFollowed = (traceId: string): AppError =>
  new AppError('unavailable', 'the run goes on, but cannot be followed now: come back to its events', {
    code: 'relay_unavailable',
    traceId,
    retryAfterSecs: 1,
  })

/** The failure of a run whose record is gone, because the only member of the database that had it was lost. */
const RECORD_LOST: FlowFailure = {
  status: 503,
  type: 'unavailable_error',
  message: 'the record of this run was lost before it began; send the request again',
}

import type { Batched } from '../../../kernel/async/batch.ts'
import type { WarningEvent } from '../../../kernel/events.ts'
import type { Failure, ModelPart, ModelProvider, ModelRequest, ModelRoute } from '../port.ts'
import { fileRefusal, hasFiles, type ReadFile, showFiles } from '../shown-files.ts'
import { failure } from './failures.ts'
import {
  type CallPart,
  failureOf,
  type PendingAnswer,
  RETRY_POLICY,
  type RetryPolicy,
  type RoutedCall,
  type StartedAnswer,
  startWithRetry,
  streamAnswer,
} from './retry.ts'

export type ModelCall = {
  primary: ModelRoute
  fallback: ModelRoute | undefined
  request: Omit<ModelRequest, 'model'>
  /** Reads the files of the messages. Left out: they have none. */
  readFile?: ReadFile | undefined
  signal: AbortSignal
  retry?: Partial<RetryPolicy> | undefined
}

/**
 * Calls a model for one turn, and the fallback when the model is unavailable (D5.5). The fallback is called only while no part
 * of an answer has been yielded, after a `provider_failover` warning. The last part is the `finish` or `failure` of the model
 * that was called last. Aborting ends the iteration without one.
 */
export const callModel = (call: ModelCall): AsyncIterableIterator<Batched<CallPart>> =>
  streamAnswer(startWithFallback(call))

async function* startWithFallback({ primary, fallback, retry, ...given }: ModelCall): PendingAnswer {
  const policy = { ...RETRY_POLICY, ...retry }
  const call = { ...given, policy }
  const isPrimarySkipped = fallback !== undefined && isSkipped(primary.provider, policy.now())
  const first = isPrimarySkipped
    ? skipped(primary)
    : yield* start({ route: primary, ...call, hasFallback: fallback !== undefined })
  const problem = first && failureOf(first)
  if (!isPrimarySkipped) noteOutcome(primary, first, policy)
  if (!fallback || !problem?.isFailover) return first

  await first?.rest.return?.()
  yield failoverWarning(primary, fallback, problem)
  yield { type: 'served_by', route: fallback }
  const second = yield* start({ route: fallback, ...call, hasFallback: false })
  const last = second && failureOf(second)
  noteOutcome(fallback, second, policy)
  if (!second || !last) return second
  const message = `${last.message} (the fallback was called because ${problem.message})`
  return { ...second, first: { type: 'failure', failure: { ...last, message } } }
}

/** What a model takes of files is its own, so they are shown to each of them anew. */
async function* start({ readFile, ...call }: RoutedCall & Pick<ModelCall, 'readFile'>): PendingAnswer {
  const { route, request } = call
  if (!readFile || !hasFiles(request.messages)) return yield* startWithRetry(call)
  const shown = await showFiles(request.messages, route, readFile)
  if ('failure' in shown) return failed(shown.failure)
  const answer = yield* startWithRetry({ ...call, request: { ...request, messages: shown.messages } })
  const problem = answer && failureOf(answer)
  if (!answer || !problem) return answer
  return { ...answer, first: { type: 'failure', failure: fileRefusal(problem, shown.messages, route) } }
}

/** A rejected request says nothing about the provider, and an aborted call neither. */
function noteOutcome({ provider }: ModelRoute, answer: StartedAnswer | undefined, { now }: RetryPolicy): void {
  const problem = answer && failureOf(answer)
  if (problem?.code === 'unsupported_attachment') return
  if (problem?.isFailover) noteFailure(provider, now())
  else if (answer && !problem) noteSuccess(provider)
}

/** The answer of a provider that is not called. */
function skipped({ provider }: ModelRoute): StartedAnswer {
  const message = `${provider.type} is not called for a while, because it has failed several runs in a row`
  const problem = failure('provider_unavailable', 'provider_skipped', message, { isFailover: true })
  return failed(problem)
}

const failed = (problem: Failure): StartedAnswer => ({ first: { type: 'failure', failure: problem }, rest: NO_PARTS })

const NO_PARTS: AsyncIterator<ModelPart> = { next: () => Promise.resolve({ done: true, value: undefined }) }

function failoverWarning(primary: ModelRoute, fallback: ModelRoute, { message, reason }: Failure): WarningEvent {
  const [from, to] = [describeRoute(primary), describeRoute(fallback)]
  return {
    type: 'warning',
    code: 'provider_failover',
    message: `${message}; ${to.model} of ${to.provider} takes the turn`,
    detail: { from, to, reason },
  }
}

const describeRoute = ({ provider, model }: ModelRoute) => ({ provider: provider.type, model })

/** D5.5. */
const MAX_FAILURES = 3
const OPEN_MS = 30_000

type State = { failures: number; skippedUntil: number }

const states = new WeakMap<ModelProvider, State>()

/**
 * Whether runs with a fallback skip this provider, because it has failed three runs in a row. After 30 s one run may try it again:
 * for the others it is skipped for another 30 s, unless that run succeeds. `now` is in milliseconds.
 */
function isSkipped(provider: ModelProvider, now: number): boolean {
  const state = states.get(provider)
  if (!state || state.failures < MAX_FAILURES) return false
  if (now < state.skippedUntil) return true
  state.skippedUntil = now + OPEN_MS
  return false
}

function noteSuccess(provider: ModelProvider): void {
  states.delete(provider)
}

function noteFailure(provider: ModelProvider, now: number): void {
  const failures = (states.get(provider)?.failures ?? 0) + 1
  states.set(provider, { failures, skippedUntil: now + OPEN_MS })
}

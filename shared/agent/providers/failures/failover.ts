import type { Batched } from '../../../kernel/async/batch.ts'
import type { WarningEvent } from '../../../kernel/events.ts'
import { KnownHealth } from '../health.ts'
import type { Failure, ModelHealth, ModelPart, ModelProvider, ModelRequest, ModelRoute } from '../port.ts'
import { fileRefusal, hasFiles, type ReadFile, showFiles } from '../shown-files.ts'
import { failure } from './failures.ts'
import { type HedgedCall, startHedged } from './hedge.ts'
import {
  type CallPart,
  failureOf,
  type PendingAnswer,
  RETRY_POLICY,
  type RetryPolicy,
  type RoutedCall,
  type StartedAnswer,
  StreamedAnswer,
  startWithRetry,
} from './retry.ts'

export type ModelCall = {
  primary: ModelRoute
  fallback: ModelRoute | undefined
  /** A second request is sent when the first is late and a client waits for the answer (D56). */
  hedge?: boolean | undefined
  request: Omit<ModelRequest, 'model'>
  /** Reads the files of the messages. Left out: the messages have no files. */
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
  new StreamedAnswer(startCall(call))

function startCall({ primary, fallback, hedge = false, retry, ...given }: ModelCall): PendingAnswer {
  const policy = retry ? { ...RETRY_POLICY, ...retry } : RETRY_POLICY
  const call: Start = { ...given, policy, route: primary, hasFallback: fallback !== undefined }
  const isHedged = hedge && primary.caller?.priority === 'interactive'
  return fallback || isHedged ? startWithFallback(call, fallback, isHedged) : start(call)
}

async function* startWithFallback(call: Start, fallback: ModelRoute | undefined, mayHedge: boolean): PendingAnswer {
  const { route: primary, policy } = call
  const now = policy.now()
  const isSkipped = fallback && !healthOf(fallback).rests(now) && (await healthOf(primary).isPassedOver(now))
  if (!isSkipped && mayHedge) {
    const { answer, problem, isHedged } = yield* startHedged(hedgedCall(call, fallback))
    if (!fallback || isHedged) return withCause(answer, problem)
    return yield* startFallback(answer, fallback, call)
  }
  const first = isSkipped ? skipped(primary) : yield* start(call)
  return fallback ? yield* startFallback(first, fallback, call) : first
}

/** Yields the fallback's answer in place of a failure of the primary. */
async function* startFallback(first: StartedAnswer | undefined, fallback: ModelRoute, call: Start): PendingAnswer {
  const problem = first && failureOf(first)
  if (!problem?.isFailover) return first
  await first?.rest.return?.()
  yield failoverWarning(call.route, fallback, problem)
  yield { type: 'served_by', route: fallback }
  return withCause(yield* start({ ...call, route: fallback, hasFallback: false }), problem)
}

/** Adds the primary's failure when both models have failed. */
function withCause(answer: StartedAnswer | undefined, cause: Failure | undefined): StartedAnswer | undefined {
  const last = answer && failureOf(answer)
  if (!answer || !last || !cause) return answer
  const message = `${last.message} (the fallback was called because ${cause.message})`
  return { ...answer, first: { type: 'failure', failure: { ...last, message } } }
}

/** The second request goes to the fallback if there is one. */
function hedgedCall(call: Start, fallback: ModelRoute | undefined): HedgedCall {
  const { route: primary, request, signal, policy } = call
  return {
    ...{ primary, spare: fallback ?? primary, signal, now: policy.now },
    open: (route, { onSent, ...sending }) =>
      start({
        ...call,
        ...sending,
        route,
        request: { ...request, onSent },
        hasFallback: call.hasFallback && route === primary,
      }),
    onLate: () => healthOf(primary).note('late', policy.now()),
  }
}

type Start = RoutedCall & Pick<ModelCall, 'readFile'>

/** Most calls have no files. A generator for each of these steps would add five promises to every call. */
const start = (call: Start): PendingAnswer =>
  call.readFile && hasFiles(call.request.messages)
    ? startShown(call, call.readFile)
    : startWithRetry({ ...call, onAnswer: (answer) => noteOutcome(call, answer) })

/** Models differ in the files that they accept, so files are prepared for each model separately. */
async function* startShown(call: Start, readFile: ReadFile): PendingAnswer {
  const { route, request } = call
  const shown = await showFiles(request.messages, route, readFile)
  if ('failure' in shown) return noteOutcome(call, failed(shown.failure))
  const { messages } = shown
  const answer = yield* startWithRetry({ ...call, request: { ...request, messages } })
  const problem = answer && failureOf(answer)
  if (!answer || !problem) return answer && noteOutcome(call, answer)
  return noteOutcome(call, { ...answer, first: { type: 'failure', failure: fileRefusal(problem, messages, route) } })
}

/**
 * Notes the call's outcome for the model's health, and returns the answer. A rejected request, an aborted call and a
 * call that was never sent do not count.
 */
function noteOutcome({ route, policy }: Start, answer: StartedAnswer): StartedAnswer {
  const problem = failureOf(answer)
  const saysNothing = problem?.code === 'unsupported_attachment' || problem?.reason === 'no_turn'
  const counts = !saysNothing && (!problem || problem.isFailover)
  if (counts) healthOf(route).note(problem ? 'failed' : 'answered', policy.now())
  return answer
}

/** The answer when a provider is skipped without a call. */
function skipped({ provider }: ModelRoute): StartedAnswer {
  const message = passedOver(provider.type)
  const problem = failure('provider_unavailable', 'provider_skipped', message, { isFailover: true })
  return failed(problem)
}

export const passedOver = (name: string): string =>
  `${name} is not called for a while, because it has failed several times of late`

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

const MAX_MODELS = 64

/** The health of models, known to this process only. */
const healths = new WeakMap<ModelProvider, Map<string, KnownHealth>>()

/** The health of a model, as far as it is known here. */
export function healthOf({ provider, model }: Pick<ModelRoute, 'provider' | 'model'>): ModelHealth {
  const shared = provider.stateOf?.(model)
  if (shared) return shared.health
  const ofProvider = healths.get(provider) ?? new Map<string, KnownHealth>()
  const health = ofProvider.get(model) ?? new KnownHealth()
  if (ofProvider.size >= MAX_MODELS) ofProvider.clear()
  healths.set(provider, ofProvider)
  ofProvider.set(model, health)
  return health
}

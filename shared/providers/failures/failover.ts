import type { WarningEvent } from '../../events.ts'
import type { Failure, ModelRequest, ModelRoute } from '../port.ts'
import {
  type CallPart,
  type PendingAnswer,
  RETRY_POLICY,
  type RetryPolicy,
  type StartedAnswer,
  startWithRetry,
  streamAnswer,
} from './retry.ts'

export type ModelCall = {
  primary: ModelRoute
  fallback: ModelRoute | undefined
  request: Omit<ModelRequest, 'model'>
  signal: AbortSignal
  retry?: Partial<RetryPolicy> | undefined
}

/**
 * Calls a model for one turn, and the fallback when the model is unavailable (D5.5). The fallback is called only while no part
 * of an answer has been yielded, after a `provider_failover` warning. The last part is the `finish` or `failure` of the model
 * that was called last. Aborting ends the iteration without one.
 */
export const callModel = (call: ModelCall): AsyncIterableIterator<CallPart> => streamAnswer(startWithFallback(call))

async function* startWithFallback({ primary, fallback, request, signal, retry }: ModelCall): PendingAnswer {
  const call = { request, signal, policy: { ...RETRY_POLICY, ...retry } }
  const first = yield* startWithRetry({ route: primary, ...call })
  const failure = failureOf(first)
  if (!fallback || !failure?.isFailover) return first

  await first?.rest.return?.()
  yield failoverWarning(primary, fallback, failure)
  yield { type: 'served_by', route: fallback }
  const second = yield* startWithRetry({ route: fallback, ...call })
  const last = failureOf(second)
  if (!second || !last) return second
  const message = `${last.message} (the fallback was called because ${failure.message})`
  return { ...second, first: { type: 'failure', failure: { ...last, message } } }
}

const failureOf = (answer: StartedAnswer | undefined): Failure | undefined =>
  answer?.first.type === 'failure' ? answer.first.failure : undefined

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

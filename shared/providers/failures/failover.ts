import type { WarningEvent } from '../../events.ts'
import type { Failure, ModelRequest, ModelRoute } from '../port.ts'
import {
  type CallPart,
  type Opened,
  type Opening,
  RETRY_POLICY,
  type RetryPolicy,
  streamWithRetry,
  thenContinue,
} from './retry.ts'

export type ModelCall = {
  primary: ModelRoute
  fallback?: ModelRoute
  request: Omit<ModelRequest, 'model'>
  signal: AbortSignal
  retry?: Partial<RetryPolicy>
}

/**
 * Asks a model for one turn, and the fallback when the model cannot be had (D5.5). The fallback takes the turn only as long as
 * nothing of the answer has been seen, after a `provider_failover` warning. The last part is the `finish` or `failure` of the
 * model that served; aborting ends the iteration without one.
 */
export const callModel = (call: ModelCall): AsyncIterableIterator<CallPart> => thenContinue(choose(call))

async function* choose({ primary, fallback, request, signal, retry }: ModelCall): Opening {
  const call = { request, signal, policy: { ...RETRY_POLICY, ...retry } }
  const opened = yield* streamWithRetry({ route: primary, ...call })
  const failure = failureOf(opened)
  if (!fallback || !failure?.isFailover) return opened

  await opened?.rest.return?.()
  yield failedOver(primary, fallback, failure)
  yield { type: 'served_by', route: fallback }
  const second = yield* streamWithRetry({ route: fallback, ...call })
  const last = failureOf(second)
  if (!second || !last) return second
  const message = `${last.message} (the fallback was asked because ${failure.message})`
  return { ...second, first: { type: 'failure', failure: { ...last, message } } }
}

const failureOf = (opened: Opened | undefined): Failure | undefined =>
  opened?.first.type === 'failure' ? opened.first.failure : undefined

function failedOver(primary: ModelRoute, fallback: ModelRoute, { message, reason }: Failure): WarningEvent {
  const [from, to] = [named(primary), named(fallback)]
  return {
    type: 'warning',
    code: 'provider_failover',
    message: `${message}; ${to.model} of ${to.provider} takes the turn`,
    detail: { from, to, reason },
  }
}

const named = ({ provider, model }: ModelRoute) => ({ provider: provider.type, model })

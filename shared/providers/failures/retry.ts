import { setTimeout as sleep } from 'node:timers/promises'
import type { WarningEvent } from '../../events.ts'
import type { Failure, ModelPart, ModelRequest, ModelRoute } from '../port.ts'

export type RetryPolicy = {
  /** The first request included. */
  maxRequests: number
  baseDelayMs: number
  /** The longest a provider's Retry-After is obeyed. */
  maxRetryAfterMs: number
  /** From 0 to 1, as `Math.random`. */
  random: () => number
}

/** D5.5. */
export const RETRY_POLICY: RetryPolicy = {
  maxRequests: 3,
  baseDelayMs: 500,
  maxRetryAfterMs: 30_000,
  random: Math.random,
}

export type RoutedCall = {
  route: ModelRoute
  request: Omit<ModelRequest, 'model'>
  signal: AbortSignal
  policy: RetryPolicy
}

/** What is told of how an answer came: warnings for the client, and the route that serves it when it is not the first one. */
export type CallNotice = WarningEvent | { type: 'served_by'; route: ModelRoute }

/** What a call yields: the model's parts, and notices about how they came. */
export type CallPart = ModelPart | CallNotice

/** An answer that has begun: its first part, and where the rest is read. */
export type Opened = { first: ModelPart; rest: AsyncIterator<ModelPart> }

/** Yields what comes before an answer, and returns the answer; `undefined` when the call was aborted before it began. */
export type Opening = AsyncGenerator<CallNotice, Opened | undefined, undefined>

/**
 * Calls a model, and again when it fails in a way that may pass, as long as nothing of its answer has been seen (D5.5). Each
 * further request is announced by a `transport_retrying` warning (D4.9). Aborting ends the wait before it at once.
 */
export async function* streamWithRetry({ route, request, signal, policy }: RoutedCall): Opening {
  for (let attempt = 1; ; attempt++) {
    const rest = route.provider.stream({ ...request, model: route.model }, signal)[Symbol.asyncIterator]()
    const { done, value: first } = await rest.next()
    if (done) return undefined
    const failure = first.type === 'failure' ? first.failure : undefined
    if (!failure?.isRetryable || attempt >= policy.maxRequests) return { first, rest }

    await rest.return?.()
    const delayMs = delayBefore(attempt, failure, policy)
    yield retrying(attempt, failure, delayMs)
    if (!(await waited(delayMs, signal))) return undefined
  }
}

/** Exponential with jitter, so that many runs do not come back together; never sooner than the provider asks for. */
function delayBefore(attempt: number, { retryAfterMs = 0 }: Failure, policy: RetryPolicy): number {
  const backoff = policy.baseDelayMs * 2 ** (attempt - 1) * (0.5 + policy.random() / 2)
  return Math.round(Math.max(backoff, Math.min(retryAfterMs, policy.maxRetryAfterMs)))
}

/** False when the signal was aborted first. */
async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal })
    return true
  } catch {
    return false // The only way a timer fails.
  }
}

function retrying(attempt: number, { code, reason, message }: Failure, delayMs: number): WarningEvent {
  const category = categoryOf(code, reason)
  return {
    type: 'warning',
    code: 'transport_retrying',
    message: `${message}; trying again in ${delayMs} ms`,
    category,
    reason,
    detail: { attempt, category, reason, delay_ms: delayMs },
  }
}

function categoryOf(code: Failure['code'], reason: string): string {
  if (code === 'provider_rate_limited') return 'rate_limit'
  if (code === 'timeout') return 'timeout'
  return /^(?:http_|stream_error)/.test(reason) ? 'server_error' : 'network'
}

/**
 * Reads an opening and then the answer it returns. The answer is handed over, not passed through: a generator around it would
 * cost every delta of every answer again.
 */
export function thenContinue(opening: Opening): AsyncIterableIterator<CallPart> {
  let rest: AsyncIterator<CallPart> | undefined
  const open = async (): Promise<IteratorResult<CallPart>> => {
    const { done, value } = await opening.next()
    if (!done) return { done: false, value }
    rest = value?.rest
    return value ? { done: false, value: value.first } : { done: true, value: undefined }
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: () => rest?.next() ?? open(),
    async return() {
      await (rest ? rest.return?.() : opening.return(undefined))
      return { done: true, value: undefined }
    },
  }
}

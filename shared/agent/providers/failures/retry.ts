import { setTimeout as sleep } from 'node:timers/promises'
import { type Batched, eachOf } from '../../../kernel/async/batch.ts'
import { END } from '../../../kernel/async/pull-iterator.ts'
import type { WarningEvent } from '../../../kernel/events.ts'
import { leavesFlex } from '../flex.ts'
import type { Failure, ModelPart, ModelRequest, ModelRoute } from '../port.ts'
import { tracedAnswer } from './traced-answer.ts'

export type RetryPolicy = {
  /** Requests in all, the first one included. */
  maxRequests: number
  baseDelayMs: number
  /** How many requests may end in a timeout, because each is a long wait. */
  maxTimeouts: number
  /** After a longer Retry-After the fallback is called at once; without a fallback the wait is cut to this. */
  maxRetryAfterMs: number
  /** Returns a number from 0 to 1, as `Math.random` does. */
  random: () => number
  /** Milliseconds of a monotonic clock. */
  now: () => number
}

/** The values of D5.5 and D5.8. */
export const RETRY_POLICY: RetryPolicy = {
  maxRequests: 3,
  maxTimeouts: 2,
  baseDelayMs: 500,
  maxRetryAfterMs: 30_000,
  random: Math.random,
  now: () => performance.now(),
}

export type RoutedCall = {
  route: ModelRoute
  request: Omit<ModelRequest, 'model'>
  signal: AbortSignal
  policy: RetryPolicy
  /** Another route takes over when this one fails. */
  hasFallback: boolean
  /** Called with the answer that is returned. */
  onAnswer?(answer: StartedAnswer): void
}

/**
 * A notice about how an answer was obtained: a warning for the client, the route that serves the turn if it is not the primary, or the route of an
 * abandoned second request, whose input has to be paid.
 */
export type CallNotice = WarningEvent | { type: 'served_by' | 'abandoned'; route: ModelRoute }

/** One item of a call: a part of the model's answer, or a notice before it. */
export type CallPart = ModelPart | CallNotice

/** An answer whose first parts have been read; `rest` yields the others. */
export type StartedAnswer = { first: Batched<ModelPart>; rest: AsyncIterator<Batched<ModelPart>> }

/** The failure, if an answer begins with one. A failure after other parts is not tried again. */
export function failureOf({ first }: StartedAnswer): Failure | undefined {
  const [part] = eachOf(first)
  return part?.type === 'failure' ? part.failure : undefined
}

/** Yields notices until an answer starts, then returns it; returns `undefined` when the call was aborted before. */
export type PendingAnswer = AsyncGenerator<CallNotice, StartedAnswer | undefined, undefined>

/**
 * Calls a model, and calls it again after a retryable failure, as long as no part of an answer has been yielded (D5.5). Each
 * retry is announced by a `transport_retrying` warning (D4.9). Aborting ends the wait before a retry at once.
 */
export async function* startWithRetry(call: RoutedCall): PendingAnswer {
  const { route, request, signal, policy, hasFallback } = call
  let timeouts = 0
  const { model, caller } = route
  const maxWaitMs = hasFallback ? policy.maxRetryAfterMs : undefined
  let asked: ModelRequest = { ...request, model, caller, maxWaitMs }
  for (let attempt = 1; ; attempt++) {
    const pooled = caller?.unhurried && route.provider.pooled?.(asked, signal)
    const provider = (pooled && (yield* pooled)) ?? route.provider
    const rest = tracedAnswer(provider, asked, signal)
    const { done, value: first } = await rest.next()
    if (done) return undefined
    const answer = { first, rest }
    const failure = failureOf(answer)
    if (failure?.code === 'timeout') timeouts++
    if (!failure || !mayRetry(call, failure, { attempt, timeouts })) {
      call.onAnswer?.(answer)
      return answer
    }

    await rest.return?.()
    if (leavesFlex(failure)) asked = { ...asked, isUrgent: true }
    const delayMs = retryDelayMs(attempt, failure, policy)
    yield retryWarning(attempt, failure, delayMs)
    if (!(await sleepUnlessAborted(delayMs, signal))) return undefined
  }
}

function mayRetry(
  { policy, hasFallback }: RoutedCall,
  { code, isRetryable, retryAfterMs = 0 }: Failure,
  { attempt, timeouts }: { attempt: number; timeouts: number },
): boolean {
  if (!isRetryable || attempt >= policy.maxRequests) return false
  if (code === 'timeout' && timeouts >= policy.maxTimeouts) return false
  return !(hasFallback && retryAfterMs > policy.maxRetryAfterMs)
}

/** Exponential backoff with jitter, so that many runs do not retry at the same time; at least the provider's Retry-After. */
function retryDelayMs(attempt: number, { retryAfterMs = 0 }: Failure, policy: RetryPolicy): number {
  const backoffMs = policy.baseDelayMs * 2 ** (attempt - 1) * (0.5 + policy.random() / 2)
  return Math.round(Math.max(backoffMs, Math.min(retryAfterMs, policy.maxRetryAfterMs)))
}

/** Resolves with false when the signal was aborted first. */
async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal })
    return true
  } catch {
    return false // A timer rejects only when it is aborted.
  }
}

function retryWarning(attempt: number, { code, reason, message }: Failure, delayMs: number): WarningEvent {
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
 * Iterates over the notices of a pending answer and then over the answer. Not a generator: once the answer has started, `next`
 * is the answer's own, because a generator around it would add a promise to every delta.
 */
export class StreamedAnswer implements AsyncIterableIterator<Batched<CallPart>> {
  /** Dropped when the answer has started: it keeps the request and all that was tried. */
  #pending: PendingAnswer | undefined
  #rest: AsyncIterator<Batched<CallPart>> | undefined

  constructor(pending: PendingAnswer) {
    this.#pending = pending
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Batched<CallPart>>> {
    if (this.#rest) return this.#rest.next()
    return this.#pending ? this.#start(this.#pending) : Promise.resolve(END)
  }

  async return(): Promise<IteratorResult<Batched<CallPart>>> {
    await (this.#rest ? this.#rest.return?.() : this.#pending?.return(undefined))
    return END
  }

  async #start(pending: PendingAnswer): Promise<IteratorResult<Batched<CallPart>>> {
    const { done, value } = await pending.next()
    if (!done) return { done: false, value }
    this.#pending = undefined
    this.#rest = value?.rest
    return value ? { done: false, value: value.first } : END
  }
}

import { AppError } from '../../kernel/errors.ts'
import type { Egress } from '../../platform/net/port.ts'
import { signatureHeaders } from './signature.ts'

/**
 * The answer to one attempt. `status` is missing when there was none; `isFinal`: no further attempt can succeed; `isOurs`: the failure is not
 * the receiver's.
 */
export type AttemptResult = {
  status?: number
  error?: string
  retryAfterMs?: number
  isFinal?: boolean
  isOurs?: boolean
}

export type Attempt = { url: string; secrets: readonly string[]; id: string; body: string }

const TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_RETRY_AFTER_MS = 3_600_000

/** Sends one message through the egress. Never rejects. The receiver's answer is not kept, because it may repeat secrets. */
export async function attemptDelivery(
  { url, secrets, id, body }: Attempt,
  egress: Pick<Egress, 'request'>,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const signed = signatureHeaders({ id, sentAt: new Date(), body }, secrets)
  try {
    const response = await egress.request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'agent-engine-webhooks', ...signed },
      body,
      signal,
      maxBytes: MAX_ANSWER_BYTES,
      timeoutMs: TIMEOUT_MS,
    })
    response.discard()
    const { status, headers } = response
    return isSuccess(status) ? { status } : { status, ...refusalOf(status, headers['retry-after']) }
  } catch (cause) {
    return { error: cause instanceof AppError ? cause.message : 'The request could not be sent.' }
  }
}

/** The receiver asks for no more messages. */
const GONE = 410

const isSuccess = (status: number): boolean => status >= 200 && status < 300

function refusalOf(status: number, retryAfter: string | string[] | undefined): Omit<AttemptResult, 'status'> {
  const isRedirect = status >= 300 && status < 400
  const error = isRedirect
    ? `The receiver answered ${status}; redirects are not followed.`
    : `The receiver answered ${status}.`
  const secs = typeof retryAfter === 'string' && /^\d+$/.test(retryAfter) ? Number(retryAfter) : 0
  return { error, retryAfterMs: Math.min(secs * 1000, MAX_RETRY_AFTER_MS), isFinal: status === GONE }
}

const SECOND = 1_000
const MINUTE = 60_000
const HOUR = 3_600_000

/** The waits between the attempts: nine attempts in about 28 hours. */
export const RETRY_DELAYS_MS: readonly number[] = [
  5 * SECOND,
  30 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  8 * HOUR,
  12 * HOUR,
]

/** The consequence of an attempt: it was delivered, it is tried again after a wait, or it is given up. */
export type Next = 'delivered' | 'dead' | { waitMs: number }

/** `attempts` is their number, including this one. The wait is lengthened by up to a tenth, so that retries do not come at the same time. */
export function nextAfter(result: AttemptResult, attempts: number, delays = RETRY_DELAYS_MS): Next {
  if (result.error === undefined) return 'delivered'
  const delay = delays[attempts - 1]
  if (delay === undefined || result.isFinal) return 'dead'
  return { waitMs: Math.max(result.retryAfterMs ?? 0, Math.round(delay * (1 + Math.random() / 10))) }
}

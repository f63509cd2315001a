import { fileURLToPath } from 'node:url'
import { parseJson } from '../../shared/kernel/json.ts'
import type { Answer } from './answer.ts'

/** The statuses that each error type may have (api.md "Errors", D2.1–D2.3; 408 and 431 of the HTTP parser, 412 and 416 of files). */
const STATUSES: Record<string, readonly number[]> = {
  invalid_request_error: [400, 405, 408, 412, 413, 415, 416, 431],
  authentication_error: [401],
  permission_error: [403],
  not_found_error: [404],
  conflict_error: [409],
  rate_limit_error: [429],
  internal_error: [500],
  upstream_error: [502],
  unavailable_error: [503],
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

/** Texts that no error message may contain: stack traces, paths on the machine, error codes of Node and its HTTP parser. */
const LEAK = /\n\s+at |node:internal|node_modules|\/home\/|file:\/\/|ERR_[A-Z_]{3,}|HPE_[A-Z_]{3,}/
const PROJECT_DIR = fileURLToPath(new URL('../..', import.meta.url))

/** In what ways an answer breaks the rules for every answer, whatever was requested (P12; api.md "Errors"). */
export function problemsOf(answer: Answer): string[] {
  const { status, headers } = answer
  const problems: string[] = []
  if (status >= 500) problems.push(`status ${status}`)
  if (!REQUEST_ID.test(headers.get('x-request-id') ?? '')) problems.push('no X-Request-ID')
  if (status === 429 && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? '')) problems.push('429 without Retry-After')
  if (status === 405 && !headers.has('allow')) problems.push('405 without Allow')
  if (status >= 400) problems.push(...problemsOfRefusal(answer))
  return problems
}

function problemsOfRefusal({ status, headers, body, isHead }: Answer): string[] {
  if (!headers.get('content-type')?.startsWith('application/json')) return [`${status} without a JSON body`]
  if (isHead) return []
  const { type, message } = errorIn(body)
  if (typeof type !== 'string' || typeof message !== 'string' || message === '') {
    return [`${status} without the error envelope: ${body.toString('latin1', 0, 80)}`]
  }
  if (LEAK.test(message) || message.includes(PROJECT_DIR)) return [`${status} reveals ${message.slice(0, 200)}`]
  return STATUSES[type]?.includes(status) ? [] : [`${status} with the type ${type}`]
}

/** The error object of the envelope; empty when the body is not JSON or has none. */
function errorIn(body: Buffer): { type?: unknown; message?: unknown } {
  const { error } = (parseJson(body.toString()) ?? {}) as { error?: unknown }
  return typeof error === 'object' && error !== null ? error : {}
}

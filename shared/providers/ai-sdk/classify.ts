import { classifyFailure, connectionFailure, unreadable } from '../failures/classify.ts'
import { type FailedCall, truncated } from '../failures/failures.ts'
import type { Failure } from '../port.ts'

/** What an error of the package comes to, thrown or told in the stream. */
export const toFailure = (error: unknown, call: FailedCall): Failure =>
  classifyFailure(error, call) ?? badAnswer(error, call)

/** An error without a status: no connection at all, or a stream that is not what it should be. */
function badAnswer(error: unknown, call: FailedCall): Failure {
  const { name, data, statusCode } = error as { name?: string; data?: unknown; statusCode?: number }
  if (name === 'AI_APICallError' && statusCode === undefined) return connectionFailure('', call)
  if (name === 'AI_InvalidResponseDataError' && data === undefined) return truncated(call)
  return unreadable(
    name === 'AI_JSONParseError' || name === 'AI_TypeValidationError' ? 'bad_chunk' : 'bad_answer',
    call,
  )
}

import type { Failure } from './script.ts'

const ERRORS: Record<number, [type: string, message: string]> = {
  400: ['invalid_request_error', 'messages: at least one message is required'],
  401: ['authentication_error', 'invalid x-api-key'],
  402: ['billing_error', 'Your credit balance is too low to access the Anthropic API.'],
  403: ['permission_error', 'Your API key does not have permission to use the specified resource.'],
  404: ['not_found_error', 'Not found'],
  413: ['request_too_large', 'Request exceeds the maximum size'],
  429: ['rate_limit_error', "This request would exceed your account's rate limit. Please try again later."],
  500: ['api_error', 'Internal server error'],
  504: ['timeout_error', 'Request timed out'],
  529: ['overloaded_error', 'Overloaded'],
}

export function anthropicError({ status, message, code }: Failure, id: string) {
  const [type, text] =
    ERRORS[status] ?? (status < 500 ? ['invalid_request_error', 'Bad request'] : ['api_error', 'Internal server error'])
  return { type: 'error', error: { type: code ?? type, message: message ?? text }, request_id: `req_${id}` }
}

import type { Failure } from './script.ts'

type Known = { message: string; type: string; code: string | null }

const KNOWN: Record<number, Known> = {
  400: { message: 'Invalid request.', type: 'invalid_request_error', code: null },
  401: {
    message:
      'Incorrect API key provided: sk-test. You can find your API key at https://platform.openai.com/account/api-keys.',
    type: 'invalid_request_error',
    code: 'invalid_api_key',
  },
  402: { message: 'You have insufficient credits.', type: 'insufficient_quota', code: 'insufficient_quota' },
  403: {
    message: 'Country, region, or territory not supported',
    type: 'request_forbidden',
    code: 'unsupported_country_region_territory',
  },
  404: {
    message: 'The model does not exist or you do not have access to it.',
    type: 'invalid_request_error',
    code: 'model_not_found',
  },
  429: {
    message: 'Rate limit reached for requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again later.',
    type: 'requests',
    code: 'rate_limit_exceeded',
  },
  503: {
    message: 'Our servers are currently overloaded. Please try again later.',
    type: 'service_unavailable_error',
    code: 'server_is_overloaded',
  },
}

const CLIENT: Known = { message: 'The request was refused.', type: 'invalid_request_error', code: null }
const SERVER: Known = {
  message: 'The server had an error while processing your request. Sorry about that!',
  type: 'server_error',
  code: null,
}

/** The `error` object of both OpenAI formats, which differ in the name of the input. */
export function openaiError({ status, message, code }: Failure, input: 'messages' | 'input') {
  const known = KNOWN[status] ?? (status < 500 ? CLIENT : SERVER)
  const param = code === 'context_length_exceeded' ? input : null
  return { message: message ?? known.message, type: known.type, param, code: code ?? known.code }
}

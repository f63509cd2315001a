import type { Answer } from './script.ts'

/** One chunk of a streamed chat completion. `fields` belong to its choice, `more` to the chunk. */
export const chunk = (delta: object, fields: object = {}, more: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: null, ...fields }],
  ...more,
})

export const say = (content: string, fields: object = {}) => chunk({ content }, fields)
export const callPiece = (piece: object) => chunk({ tool_calls: [{ index: 0, ...piece }] })
export const callRead = (input: unknown, id = 'a') => callPiece({ id, function: { name: 'Read', arguments: input } })
export const end = (fields: object = {}, more: object = {}) => chunk({}, { finish_reason: 'stop', ...fields }, more)

/** An event stream with these chunks. A text is sent as it stands, `[DONE]` included. */
export const events = (...chunks: (object | string)[]): Answer => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: chunks.map((each) => (typeof each === 'string' ? each : `data: ${JSON.stringify(each)}\n\n`)).join(''),
})

export const DONE = 'data: [DONE]\n\n'

/** A whole completion, as a proxy without streaming sends it under status 200. */
export const wholeCompletion = (message: object, more: object = {}): Answer => ({
  status: 200,
  body: JSON.stringify(
    { choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }], ...more },
    null,
    2,
  ),
})

const TOO_LONG = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."

/** An input that is too long, in the words and forms of the servers that copy the format. */
export const TOO_LONG_ERRORS: Record<string, Answer> = {
  'an HTTP error of vLLM before 0.9': {
    status: 400,
    body: { object: 'error', message: TOO_LONG, type: 'BadRequestError', param: null, code: 400 },
  },
  "FastAPI's `detail` as text": { status: 400, body: { detail: TOO_LONG } },
  "FastAPI's `detail` as a list": {
    status: 422,
    body: { detail: [{ loc: ['body', 'messages'], msg: TOO_LONG, type: 'value_error' }] },
  },
  "FastAPI's `detail` as an object": { status: 400, body: { detail: { error: { message: TOO_LONG } } } },
  'an error of OpenRouter that quotes another one as JSON': {
    status: 400,
    body: openRouterError(JSON.stringify({ error: { message: 'prompt is too long: 9000 tokens > 8192 maximum' } })),
  },
  'an error of OpenRouter that quotes another one as text': { status: 502, body: openRouterError(TOO_LONG) },
  'status 429 with "Request too large"': {
    status: 429,
    body: {
      error: {
        message:
          'Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000.',
        type: 'tokens',
        code: 'rate_limit_exceeded',
      },
    },
  },
  'a JSON error under status 200': { status: 200, body: { error: { message: TOO_LONG, code: 400 } } },
  'a JSON error of FastAPI under status 200': { status: 200, body: { detail: TOO_LONG } },
  'an error event in the stream': events({ object: 'error', message: TOO_LONG, code: 400 }, DONE),
  'an error event of OpenRouter in the stream': events(openRouterError(TOO_LONG), DONE),
}

function openRouterError(raw: string) {
  return { error: { message: 'Provider returned error', code: 400, metadata: { raw, provider_name: 'Anthropic' } } }
}

import type { ToolCall } from './acts.ts'
import type { Failure, Finish, Usage } from './script.ts'
import { type Block, type Call, type Encoder, type Ending, inputOf, type Json, type Wire } from './wire.ts'

/** Google's generateContent API, streamed with `?alt=sse`. */
export const google: Wire = {
  format: 'google',
  requestIdHeader: 'x-goog-request-id',
  stream,
  whole: (call, blocks, { usage, ...ending }) => {
    const parts = blocks.flatMap(partsOf)
    return chunk(call, { parts, usage, finishReason: finishReason(ending, blocks.some(isMalformed)) })
  },
  errorBody,
  contextTooLong: {
    status: 400,
    message: 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).',
  },
  opensBeforeFailing: false,
}

/** Tool calls are sent as a whole. One that is not JSON is not sent; the finish reason reports it. */
function stream(call: Call): Encoder {
  const send = (part: Json) => frame(chunk(call, { parts: [part], usage: call.usage }))
  let malformed = false
  return {
    open: () => '',
    text: (text) => send({ text }),
    thinking: (text) => send({ text, thought: true }),
    tool: (tool) => {
      const block: Block = { kind: 'tool', call: tool }
      malformed ||= isMalformed(block)
      return partsOf(block).map(send)
    },
    error: (failure) => frame(errorBody(failure)),
    close: ({ usage, ...ending }) =>
      frame(chunk(call, { parts: [{ text: '' }], usage, finishReason: finishReason(ending, malformed) })),
  }
}

const frame = (data: unknown) => `data: ${JSON.stringify(data)}\r\n\r\n`

function chunk(call: Call, { parts, usage, finishReason }: { parts: Json[]; usage: Usage; finishReason?: string }) {
  const candidate = { content: { parts, role: 'model' }, ...(finishReason !== undefined && { finishReason }), index: 0 }
  return { candidates: [candidate], usageMetadata: usageOf(usage), modelVersion: call.model, responseId: call.id }
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

const isMalformed = (block: Block) => block.kind === 'tool' && !isObject(inputOf(block.call))

function partsOf(block: Block): Json[] {
  if (block.kind === 'text') return [{ text: block.text }]
  if (block.kind === 'thinking') return [{ text: block.text, thought: true }]
  return isMalformed(block) ? [] : [{ functionCall: functionCall(block.call), thoughtSignature: 'EpEgCo4gAb4=' }]
}

const functionCall = (call: ToolCall) => ({
  ...(call.id !== undefined && { id: call.id }),
  name: call.name,
  args: inputOf(call),
})

const FINISH: Record<Finish, string> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
}

const finishReason = ({ finish, rawFinish }: Pick<Ending, 'finish' | 'rawFinish'>, malformed: boolean) =>
  rawFinish ?? (malformed ? 'MALFORMED_FUNCTION_CALL' : FINISH[finish])

/** In this format the candidates' tokens exclude thinking. */
const usageOf = ({ input, output, cacheRead, reasoning }: Usage) => ({
  promptTokenCount: input,
  candidatesTokenCount: output - reasoning,
  totalTokenCount: input + output,
  ...(cacheRead > 0 && { cachedContentTokenCount: cacheRead }),
  promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
  ...(reasoning > 0 && { thoughtsTokenCount: reasoning }),
})

const ERRORS: Record<number, [status: string, message: string]> = {
  400: ['INVALID_ARGUMENT', 'Request contains an invalid argument.'],
  401: ['UNAUTHENTICATED', 'Request had invalid authentication credentials.'],
  403: ['PERMISSION_DENIED', 'The caller does not have permission'],
  404: ['NOT_FOUND', 'The model is not found for API version v1beta, or is not supported for generateContent.'],
  409: ['ABORTED', 'The operation was aborted.'],
  429: ['RESOURCE_EXHAUSTED', 'You exceeded your current quota, please check your plan and billing details.'],
  500: ['INTERNAL', 'An internal error has occurred. Please retry.'],
  503: ['UNAVAILABLE', 'The model is overloaded. Please try again later.'],
  504: ['DEADLINE_EXCEEDED', 'The request timed out. Please try again.'],
}

function errorBody({ status, message, code }: Failure, _id?: string, retryAfter?: number | string) {
  const [name, text] = ERRORS[status] ?? ['UNKNOWN', 'Unknown error.']
  const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfter}s` }
  const details = typeof retryAfter === 'number' ? { details: [retry] } : {}
  return { error: { code: status, message: message ?? text, status: code ?? name, ...details } }
}

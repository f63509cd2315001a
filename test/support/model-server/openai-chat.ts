import type { ToolCall } from './acts.ts'
import { openaiError } from './openai-errors.ts'
import type { Usage } from './script.ts'
import type { Block, Call, Encoder, Ending, Wire } from './wire.ts'

/** OpenAI's chat completions API, with the `reasoning_content` that DeepSeek, vLLM and others add. */
export const openaiChat: Wire = {
  format: 'openai-chat',
  requestIdHeader: 'x-request-id',
  stream,
  whole,
  errorBody: (failure) => ({ error: openaiError(failure, 'messages') }),
  contextTooLong: {
    status: 400,
    message:
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 128012 tokens. Please reduce the length of the messages.",
    code: 'context_length_exceeded',
  },
  opensBeforeFailing: false,
}

function stream(call: Call): Encoder {
  const withUsage = asksForUsage(call)
  const head = `data: ${JSON.stringify(envelope(call, 'chat.completion.chunk')).slice(0, -1)}`
  const tail = withUsage ? ',"usage":null}\n\n' : '}\n\n'
  const deltaHead = `${head},"choices":[{"index":0,"delta":`
  const deltaTail = `,"logprobs":null,"finish_reason":null}]${tail}`
  const delta = (json: string) => deltaHead + json + deltaTail
  let tools = 0
  return {
    open: () => delta(opening(call)),
    text: (piece) => delta(`{"content":${JSON.stringify(piece)}}`),
    thinking: (piece) => delta(`{"content":null,"reasoning_content":${JSON.stringify(piece)}}`),
    tool: (tool) => toolDeltas(call, tool, tools++).map((each) => delta(JSON.stringify({ tool_calls: [each] }))),
    error: (failure) => `data: ${JSON.stringify({ error: openaiError(failure, 'messages') })}\n\n`,
    close: ({ finish, rawFinish = finish, usage }) => {
      const last = `${deltaHead}{},"logprobs":null,"finish_reason":"${rawFinish}"}]${tail}`
      const cost = withUsage ? `${head},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}\n\n` : ''
      return `${last}${cost}data: [DONE]\n\n`
    },
  }
}

function asksForUsage({ body }: Call): boolean {
  const options = body['stream_options']
  return typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === true
}

/** The content of the first chunk is empty when text follows it and null when it does not. */
function opening({ opensWith }: Call): string {
  if (opensWith === 'thinking') return '{"role":"assistant","content":null,"reasoning_content":""}'
  return JSON.stringify({ role: 'assistant', content: opensWith === 'text' ? '' : null, refusal: null })
}

const envelope = ({ id, createdSecs, model, body }: Call, object: string) => ({
  id: `chatcmpl-${id}`,
  object,
  created: createdSecs,
  model,
  service_tier: body['service_tier'] ?? 'default',
  system_fingerprint: 'fp_5cad2b1e07',
})

const toolId = (call: Call, tool: ToolCall, index: number) => tool.id ?? `call_${call.id}${index}`

/** A call starts with empty arguments. Their pieces follow and name the index only. */
function toolDeltas(call: Call, tool: ToolCall, index: number) {
  const start = { id: toolId(call, tool, index), type: 'function', function: { name: tool.name, arguments: '' } }
  return [{ index, ...start }, ...tool.pieces.map((piece) => ({ index, function: { arguments: piece } }))]
}

function whole(call: Call, blocks: Block[], { finish, rawFinish = finish, usage }: Ending) {
  const said = (kind: 'text' | 'thinking') =>
    blocks.flatMap((block) => (block.kind === kind ? [block.text] : [])).join('') || null
  const thought = said('thinking')
  const calls = blocks.flatMap((block) => (block.kind === 'tool' ? [block.call] : []))
  const message = {
    role: 'assistant',
    content: said('text'),
    ...(thought !== null && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls.map((tool, index) => wholeTool(call, tool, index)) }),
    refusal: null,
    annotations: [],
  }
  const choices = [{ index: 0, message, logprobs: null, finish_reason: rawFinish }]
  return { ...envelope(call, 'chat.completion'), choices, usage: usageOf(usage) }
}

function wholeTool(call: Call, tool: ToolCall, index: number) {
  const { name, pieces } = tool
  return { id: toolId(call, tool, index), type: 'function', function: { name, arguments: pieces.join('') } }
}

const usageOf = ({ input, output, cacheRead, cacheWrite, reasoning }: Usage) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: {
    cached_tokens: cacheRead,
    audio_tokens: 0,
    ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
  },
  completion_tokens_details: {
    reasoning_tokens: reasoning,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

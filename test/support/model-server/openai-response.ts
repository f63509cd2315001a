import type { ToolCall } from './acts.ts'
import type { Finish, Usage } from './script.ts'
import type { Call, Ending, Json } from './wire.ts'

export type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed'
export type Item = Json & { id: string }

/** A cut or filtered answer is `incomplete`; one with tool calls is `completed`. */
export const statusOf = ({ finish, rawFinish }: Pick<Ending, 'finish' | 'rawFinish'>): Status =>
  rawFinish !== undefined || finish === 'length' || finish === 'content_filter' ? 'incomplete' : 'completed'

/** Without a text the message is in progress and empty. */
export const messageItem = (call: Call, index: number, text?: string): Item => ({
  id: `msg_${call.id}${index}`,
  type: 'message',
  status: text === undefined ? 'in_progress' : 'completed',
  content: text === undefined ? [] : [{ type: 'output_text', annotations: [], logprobs: [], text }],
  role: 'assistant',
})

export const reasoningItem = (call: Call, index: number, text?: string): Item => ({
  id: `rs_${call.id}${index}`,
  type: 'reasoning',
  ...(call.body['store'] === false && { encrypted_content: `gAAAAAB${call.id}${index}` }),
  summary: text === undefined ? [] : [{ type: 'summary_text', text }],
})

export const callItem = (call: Call, index: number, { id, name, pieces }: ToolCall): Item => ({
  id: `fc_${call.id}${index}`,
  type: 'function_call',
  status: 'completed',
  arguments: pieces.join(''),
  call_id: id ?? `call_${call.id}${index}`,
  name,
})

type State = {
  status: Status
  output: Item[]
  ending?: Ending
  error?: { code: string | null; message: string }
}

/** The response object: the request's parameters and the output so far. */
export function responseOf({ id, createdSecs, model, body }: Call, { status, output, ending, error }: State): Json {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: createdSecs,
    status,
    background: false,
    error: error ? { code: error.code ?? 'server_error', message: error.message } : null,
    incomplete_details:
      status === 'incomplete' && ending ? { reason: ending.rawFinish ?? incompleteReason(ending.finish) } : null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    max_tool_calls: null,
    model,
    output: status === 'in_progress' ? [] : output,
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: body['previous_response_id'] ?? null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: body['service_tier'] ?? 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_logprobs: 0,
    top_p: body['top_p'] ?? 1,
    truncation: 'disabled',
    usage: ending ? usageOf(ending.usage) : null,
    user: null,
    metadata: {},
  }
}

const incompleteReason = (finish: Finish) => (finish === 'length' ? 'max_output_tokens' : 'content_filter')

const usageOf = ({ input, output, cacheRead, cacheWrite, reasoning }: Usage) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }) },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
})

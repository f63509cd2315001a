import type { ToolCall } from './acts.ts'
import type { Block, Call, Encoder, Ending, Wire } from './wire.ts'
import { inputOf } from './wire.ts'

/** Ollama's own chat API: a JSON object on each line. */
export const ollama: Wire = {
  format: 'ollama',
  requestIdHeader: 'x-request-id',
  stream,
  whole: (call, blocks, ending) => ({ ...lineOf(call, wholeMessage(blocks)), ...endOf(ending) }),
  errorBody: ({ status, message }) => ({ error: message ?? `the request failed with status ${status}` }),
  contextTooLong: {
    status: 400,
    message: 'the request exceeds the available context size (8192 tokens), try increasing it',
  },
  opensBeforeFailing: false,
}

function stream(call: Call): Encoder {
  const line = (fields: object) => `${JSON.stringify(fields)}\n`
  const message = (fields: object) => line(lineOf(call, { role: 'assistant', content: '', ...fields }))
  return {
    open: () => '',
    text: (content) => message({ content }),
    thinking: (thinking) => message({ thinking }),
    tool: (tool) => [message({ tool_calls: [toolCall(tool)] })],
    error: (failure) => line(ollama.errorBody(failure, call.id) as object),
    close: (ending) => line({ ...lineOf(call, { role: 'assistant', content: '' }), ...endOf(ending) }),
  }
}

const lineOf = ({ model, createdSecs }: Call, message: object) => ({
  model,
  created_at: new Date(createdSecs * 1_000).toISOString(),
  message,
  done: false,
})

const endOf = ({ finish, rawFinish, usage }: Ending) => ({
  done: true,
  done_reason: rawFinish ?? (finish === 'length' ? 'length' : 'stop'),
  total_duration: 5_043_500_667,
  prompt_eval_count: usage.input,
  eval_count: usage.output,
})

/** Most servers send no ids. The arguments are an object. */
const toolCall = (tool: ToolCall) => ({
  ...(tool.id !== undefined && { id: tool.id }),
  function: { name: tool.name, arguments: inputOf(tool) },
})

function wholeMessage(blocks: Block[]): object {
  const said = (kind: 'text' | 'thinking') =>
    blocks.flatMap((block) => (block.kind === kind ? [block.text] : [])).join('')
  const calls = blocks.flatMap((block) => (block.kind === 'tool' ? [toolCall(block.call)] : []))
  return {
    role: 'assistant',
    content: said('text'),
    thinking: said('thinking'),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

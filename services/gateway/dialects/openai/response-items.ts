import type { JsonObject } from '../../../../shared/kernel/events.ts'

/** A text of the model, or its thinking, each an item of a response with one part. */
export type Block = 'text' | 'thinking'
/** A block that is being written. `index` is its place in the output. */
export type OpenBlock = { block: Block; id: string; index: number; text: string }

/** The prefixes of the event names. */
export const DELTAS: Record<Block, string> = {
  text: 'response.output_text',
  thinking: 'response.reasoning_summary_text',
}
export const PARTS: Record<Block, string> = {
  text: 'response.content_part',
  thinking: 'response.reasoning_summary_part',
}

export const partAt = ({ block, id: item_id, index: output_index }: OpenBlock): JsonObject =>
  block === 'text' ? { item_id, output_index, content_index: 0 } : { item_id, output_index, summary_index: 0 }

export const partOf = ({ block, text }: OpenBlock): JsonObject =>
  block === 'text' ? { type: 'output_text', text, annotations: [], logprobs: [] } : { type: 'summary_text', text }

export function itemOf({ block, id, status, parts }: OpenBlock & { status: string; parts: JsonObject[] }): JsonObject {
  if (block === 'text') return { id, type: 'message', role: 'assistant', status, content: parts }
  return { id, type: 'reasoning', status, summary: parts }
}

/** This server's tools are shown as those of an MCP server: in OpenAI's API the server calls these itself, too. */
const SERVER_LABEL = 'agent-engine'

type Asked = { id: string; tool_name: string; input: JsonObject }

export const approvalRequest = ({ id, tool_name: name, input }: Asked): JsonObject => ({
  id,
  type: 'mcp_approval_request',
  name,
  arguments: JSON.stringify(input),
  server_label: SERVER_LABEL,
})

/** A call that the client is to execute. */
export const functionCall = ({
  id,
  callId,
  name,
  input,
}: {
  id: string
  callId: string
  name: string
  input: JsonObject
}) => ({
  ...{ id: `fc_${id}`, type: 'function_call', call_id: callId, name },
  ...{ arguments: JSON.stringify(input), status: 'completed' },
})

type EndedCall = {
  id: string
  toolName: string
  input: JsonObject
  /** The id of the permission request that the call waited for. */
  request: string | undefined
  output: string
  isError: boolean
}

/** The item of a call that has ended. */
export type EndedItem = JsonObject & { id: string; status: 'completed' | 'failed'; arguments: string }

/** The items of a call: one for its beginning and one for its end. */
export function callItems({ id, toolName, input, request, output, isError }: EndedCall): [JsonObject, EndedItem] {
  const begun = {
    ...{ id: `mcp_${id}`, type: 'mcp_call', name: toolName, arguments: JSON.stringify(input) },
    ...{ server_label: SERVER_LABEL, approval_request_id: request ?? null },
    ...{ output: null, error: null, status: 'in_progress' },
  }
  if (!isError) return [begun, { ...begun, status: 'completed', output }]
  const error = { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: output }] }
  return [begun, { ...begun, status: 'failed', error }]
}

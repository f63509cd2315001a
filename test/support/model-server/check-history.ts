import type { HistoryEntry } from './history.ts'
import type { Failure } from './script.ts'
import type { Format, Json } from './wire.ts'

type Messages = { unanswered(ids: string[], message: number): string; orphan(id: string, message: number): string }

const MESSAGES: Record<Format, Messages> = {
  'openai-chat': {
    unanswered: (ids) =>
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
    orphan: () =>
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
  },
  'openai-responses': {
    unanswered: (ids) => `No tool output found for function call ${ids[0]}.`,
    orphan: (id) => `No tool call found for function call output with call_id ${id}.`,
  },
  anthropic: {
    unanswered: (ids, message) =>
      `messages.${message}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    orphan: (id, message) =>
      `messages.${message}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
  },
  ollama: {
    unanswered: (ids) => `tool calls without results: ${ids.join(', ')}`,
    orphan: (id) => `a tool result without its call: ${id}`,
  },
  google: {
    unanswered: () =>
      'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
    orphan: () => 'Please ensure that function response turn comes immediately after a function call turn.',
  },
}

/**
 * Returns the error with which a provider refuses an invalid conversation: one without messages, a tool call without a result
 * before the next message, or a result without a call.
 */
export function checkHistory(format: Format, body: Json, history: HistoryEntry[]): Failure | undefined {
  if (refersBack(body)) return undefined
  if (isEmpty(body)) return { status: 400 }
  const messages = MESSAGES[format]
  const open: HistoryEntry[] = []
  for (const entry of history) {
    const call = open.findIndex(({ id }) => id === entry.id)
    if (entry.kind === 'call') open.push(entry)
    else if (entry.kind !== 'result' && isTooEarly(format, entry, open[0])) break
    else if (entry.kind === 'result' && call < 0) return refusal(messages.orphan(entry.id, entry.message))
    else if (entry.kind === 'result') open.splice(call, 1)
  }
  const [first] = open
  const ids = open.map(({ id }) => id)
  return first && refusal(messages.unanswered(ids, first.message))
}

const refusal = (message: string): Failure => ({ status: 400, message })

/** Only the responses API allows assistant messages between calls and their results: each is an item of its own. */
const isTooEarly = (format: Format, entry: HistoryEntry, call: HistoryEntry | undefined) =>
  call !== undefined && entry.message !== call.message && (entry.kind === 'user' || format !== 'openai-responses')

function isEmpty(body: Json): boolean {
  const conversation = body['messages'] ?? body['contents'] ?? body['input'] ?? []
  return Array.isArray(conversation) && conversation.length === 0
}

/** The responses API can store earlier items; a conversation that refers to them cannot be checked here. */
function refersBack(body: Json): boolean {
  const { input } = body
  if (typeof body['previous_response_id'] === 'string') return true
  return Array.isArray(input) && input.some((item) => item?.type === 'item_reference')
}

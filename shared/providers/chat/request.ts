import type { JsonObject } from '../../events.ts'
import type { AssistantBlock, Message, ModelRequest, ProviderMeta, ToolDefinition } from '../port.ts'

/** The key under which this format's own data travels with a part. Nothing else is sent back to it. */
export const NAMESPACE = 'chat'

const OLLAMA = 'http://127.0.0.1:11434/v1'

/** Where completions are asked for. Ollama's base may leave out `/v1`, or be left out. */
export function chatUrl(type: string, baseUrl: string = OLLAMA): string {
  const url = new URL(baseUrl)
  const isBareHost = type === 'ollama' && url.pathname === '/'
  url.pathname = `${isBareHost ? '/v1' : url.pathname.replace(/\/+$/, '')}/chat/completions`
  return url.href
}

/** Makes a request's body, as JSON. */
export type ChatBody = (request: ModelRequest) => string

export function createChatBody(type: string): ChatBody {
  const known = new WeakMap<readonly ToolDefinition[], string>()
  // The same tools are offered turn after turn, and are most of a short request.
  const toolsJson = (tools: readonly ToolDefinition[]) => {
    const json = known.get(tools) ?? JSON.stringify(tools.map(toTool))
    known.set(tools, json)
    return json
  }
  return (request) => {
    const { model, system, messages, tools } = request
    const stop = stopsOf(request)
    const conversation = toConversation(messages)
    const body = JSON.stringify({
      model,
      ...(stop.length > 0 && { stop }),
      ...(type === 'openai' && tools.length > 0 && mustNotReason(model) && { reasoning_effort: 'none' }),
      messages: system ? [{ role: 'system', content: system }, ...conversation] : conversation,
      stream: true,
      stream_options: { include_usage: true },
    })
    return tools.length > 0 ? `${body.slice(0, -1)},"tools":${toolsJson(tools)}}` : body
  }
}

/** OpenAI's reasoning models, and those of xAI, refuse to be called with any. */
const takesNoStops = (model: string) => /(?:^|\/)(?:o\d|gpt-[5-9]|grok-[3-9])/.test(model)

const MAX_STOPS = 4

/** As many as the format takes; the engine enforces all of them anyway (D4.11). Some refuse one that is only white space. */
const stopsOf = ({ model, stopSequences }: ModelRequest): string[] =>
  takesNoStops(model) ? [] : stopSequences.filter((stop) => stop.trim() !== '').slice(0, MAX_STOPS)

/** From 5.6 on these models take tools in this format only without reasoning. */
const mustNotReason = (model: string) => /(?:^|\/)gpt-5\.(?:[6-9]|\d\d)/.test(model)

const toTool = ({ name, description, inputSchema }: ToolDefinition) => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
})

function toConversation(messages: readonly Message[]): JsonObject[] {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  return messages.flatMap((message, index) => toMessages(message, index > lastUser))
}

function toMessages(message: Message, keepsThinking: boolean): JsonObject[] {
  if (message.role === 'user') return [{ role: 'user', content: message.text }]
  if (message.role === 'assistant') return toAssistant(message.blocks, keepsThinking)
  return message.results.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output }))
}

/**
 * Of the servers made after OpenAI's some demand their `reasoning_content` back during tool calls (DeepSeek, Kimi) and others
 * refuse the field (Groq, Mistral): those get it whose blocks are marked as having come in it.
 */
function toAssistant(blocks: AssistantBlock[], keepsThinking: boolean): JsonObject[] {
  let text = ''
  let thinking = ''
  const calls: JsonObject[] = []
  for (const block of blocks) {
    if (block.type === 'text') text += block.text
    else if (block.type === 'tool_use') calls.push(toCall(block))
    else if (keepsThinking && block.meta?.[NAMESPACE]) thinking += block.text
  }
  if (text === '' && thinking === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

function toCall({ id, toolName, input, meta }: Extract<AssistantBlock, { type: 'tool_use' }>): JsonObject {
  return { id, type: 'function', function: { name: toolName, arguments: JSON.stringify(input) }, ...signature(meta) }
}

/** Google's models want the signature of a call back, behind this format too. */
function signature(meta: ProviderMeta | undefined): JsonObject {
  const signed = meta?.[NAMESPACE]?.['thought_signature']
  return signed === undefined ? {} : { extra_content: { google: { thought_signature: signed } } }
}

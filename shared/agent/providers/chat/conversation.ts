import { type Attachment, fileKindOf } from '../../../kernel/attachment.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { isWav, textOfFile } from '../attachments.ts'
import type { AssistantBlock, Message, ModelRequest, ProviderMeta, ToolResultBlock } from '../port.ts'
import { COMMON_IDS, MISTRAL_IDS, withToolIds } from '../tool-ids.ts'

/** The namespace of this format's data in a part's `meta`. Data of other namespaces is not sent to it. */
export const NAMESPACE = 'chat'

const MISTRAL = /mistral|ministral|magistral|codestral|devstral|pixtral|voxtral/i

/** Converts a history into messages that every server of the format accepts. `origin` is the server's host. */
export function toConversation({ model, messages }: ModelRequest, origin: string): JsonObject[] {
  const isMistral = MISTRAL.test(`${origin} ${model}`)
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  const converted = withToolIds(messages, isMistral ? MISTRAL_IDS : COMMON_IDS).flatMap((message, index) =>
    toMessages(message, { origin, isInTurn: index > lastUser }),
  )
  return joinNeighbours(isMistral ? withAnswers(converted) : converted)
}

/** Joins neighbours of one role: the templates of many open models refuse them. */
function joinNeighbours(messages: readonly JsonObject[]): JsonObject[] {
  const joined: JsonObject[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    const isNeighbour = last?.['role'] === message['role'] && message['role'] !== 'tool'
    if (last && isNeighbour) joined[joined.length - 1] = { ...last, ...message, content: joinContent(last, message) }
    else joined.push(message)
  }
  return joined
}

function joinContent({ content: first }: JsonObject, { content: second }: JsonObject): unknown {
  if (Array.isArray(first) || Array.isArray(second)) return [...partsOf(first), ...partsOf(second)]
  return [first, second].filter((text) => typeof text === 'string' && text !== '').join('\n\n')
}

const partsOf = (content: unknown): unknown[] => (Array.isArray(content) ? content : [{ type: 'text', text: content }])

/** A run that ended between two turns leaves tool results without an answer. Mistral refuses a user message after them, so an answer is added. */
const withAnswers = (messages: readonly JsonObject[]): JsonObject[] =>
  messages.flatMap((message, index) => {
    const isUnanswered = message['role'] === 'user' && messages[index - 1]?.['role'] === 'tool'
    return isUnanswered ? [{ role: 'assistant', content: '(no answer)' }, message] : [message]
  })

/** `isInTurn`: the message belongs to the current turn's tool calls. */
type Place = { origin: string; isInTurn: boolean }

function toMessages(message: Message, place: Place): JsonObject[] {
  if (message.role === 'user') return [{ role: 'user', content: toContent(message) }]
  if (message.role === 'assistant') return toAssistant(message.blocks, place)
  const results = message.results.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output }))
  return [...results, ...toFiles(message.results)]
}

/** Tool messages hold text only, so the files of the results follow them in a message of the user. */
function toFiles(results: readonly ToolResultBlock[]): JsonObject[] {
  const files = results.flatMap(({ attachments = [] }) => attachments)
  if (files.length === 0) return []
  return [
    { role: 'user', content: [{ type: 'text', text: 'The files of the tool results above:' }, ...files.map(toFile)] },
  ]
}

function toFile(file: Attachment): JsonObject {
  const { name, mediaType, base64 } = file
  const url = `data:${mediaType};base64,${base64}`
  const kind = fileKindOf(mediaType)
  if (kind === 'text') return { type: 'text', text: textOfFile(file) }
  if (kind === 'image') return { type: 'image_url', image_url: { url } }
  if (kind !== 'audio') return { type: 'file', file: { filename: name, file_data: url } }
  return { type: 'input_audio', input_audio: { data: base64, format: isWav(mediaType) ? 'wav' : 'mp3' } }
}

/** A message of only files has no text; some servers refuse a blank one. */
function toContent({ text, attachments = [] }: Extract<Message, { role: 'user' }>): string | JsonObject[] {
  if (attachments.length === 0) return text
  return [...(text.trim() === '' ? [] : [{ type: 'text', text }]), ...attachments.map(toFile)]
}

/**
 * During tool calls some servers require their `reasoning_content` back (DeepSeek, Kimi); OpenRouter always requires its
 * `reasoning_details`; others reject these fields (Groq, Mistral). So each server gets back only the fields that it has sent.
 */
function toAssistant(blocks: AssistantBlock[], { origin, isInTurn }: Place): JsonObject[] {
  let text = ''
  let thinking = ''
  const details: unknown[] = []
  const calls: JsonObject[] = []
  for (const block of blocks) {
    if (block.type === 'text') text += block.text
    else if (block.type === 'tool_use') calls.push(toCall(block, origin))
    else {
      const { field, reasoning_details = [] } = ownMeta(block.meta, origin)
      if (field !== undefined && isInTurn) thinking += block.text
      details.push(...(reasoning_details as unknown[]))
    }
  }
  if (text === '' && thinking === '' && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(thinking !== '' && { reasoning_content: thinking }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

/** Google's models require the signature of a tool call back, also in this format. */
function toCall(block: Extract<AssistantBlock, { type: 'tool_use' }>, origin: string): JsonObject {
  const { id, toolName, input, meta } = block
  const { thought_signature } = ownMeta(meta, origin)
  return {
    id,
    type: 'function',
    function: { name: toolName, arguments: JSON.stringify(input) },
    ...(thought_signature !== undefined && { extra_content: { google: { thought_signature } } }),
  }
}

/** The data in `meta` that this server has sent. */
function ownMeta(meta: ProviderMeta | undefined, origin: string): JsonObject {
  const own = meta?.[NAMESPACE]
  return own?.['origin'] === origin ? own : {}
}

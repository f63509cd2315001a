import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { RUN } from '../../params.ts'
import type { UiMessage } from '../ui/message.ts'

/**
 * The messages of a thread in AG-UI's format, for a client that has none. The ids of a run's messages begin with the run's id, so that the
 * client's later list of messages can be placed in the thread (D38.1a). No stream of the run uses the same ids.
 */
export const threadMessages = (messages: readonly UiMessage[]): JsonObject[] =>
  messages.flatMap((message) => (message.role === 'user' ? [promptOf(message)] : named(message.id, answerOf(message))))

const promptOf = ({ id, role, parts }: UiMessage): JsonObject => ({
  ...{ id, role },
  content: contentOf(parts),
})

/** A text, or with files a list of parts. */
function contentOf(parts: readonly JsonObject[]): string | JsonObject[] {
  const text = parts.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : [])).join('\n\n')
  const files = parts.filter(({ type }) => type === 'file')
  return files.length === 0 ? text : [{ type: 'text', text }, ...files.map(mediaOf)]
}

function mediaOf({ mediaType, url }: JsonObject): JsonObject {
  const [, kind = 'document'] = /^(image|audio)\//.exec(String(mediaType)) ?? []
  return { type: kind, source: { type: 'url', value: url, mimeType: mediaType } }
}

/** An answer from the history that a session was created with has one id, which its last message keeps. */
const named = (id: string, messages: readonly JsonObject[]): JsonObject[] =>
  messages.map((message, i) => {
    const isLastOfSeed = i === messages.length - 1 && !RUN.pattern.test(id)
    return { id: isLastOfSeed ? id : `${id}-0-${i + 1}`, ...message }
  })

const answerOf = ({ parts }: UiMessage): JsonObject[] =>
  parts.flatMap((part) => {
    if (part['type'] === 'text') return [{ role: 'assistant', content: part['text'] }]
    if (part['type'] === 'data-steered') return [{ role: 'user', content: (part['data'] as JsonObject)['text'] }]
    if (part['type'] === 'reasoning') return [{ role: 'reasoning', content: part['text'] }]
    return part['type'] === 'dynamic-tool' ? callOf(part) : []
  })

function callOf({ toolCallId, toolName: name, input, output, errorText, state }: JsonObject): JsonObject[] {
  const call = { id: toolCallId, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } }
  const content = output ?? errorText ?? (state === 'output-denied' ? 'denied' : undefined)
  const result = content === undefined ? [] : [{ role: 'tool', toolCallId, content }]
  return [{ role: 'assistant', toolCalls: [call] }, ...result]
}

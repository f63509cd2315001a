import type { JsonObject } from '../../../kernel/events.ts'

const CACHED = { cache_control: { type: 'ephemeral' } }

/** OpenRouter passes Anthropic's cache points on. Other gateways may refuse the field. */
export const takesCachePoints = (origin: string, model: string): boolean =>
  /(?:^|\.)openrouter\.ai$/.test(origin) && /(?:^|\/)claude-/.test(model)

/**
 * Marks the prefixes that Anthropic caches: up to the system prompt, up to the end of this request, from which the next one reads,
 * and up to the end of the request before.
 */
export function withCachePoints(messages: readonly JsonObject[]): JsonObject[] {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
  const points = new Set([messages.length - 1, lastAnswer - 1])
  return messages.map((message, index) => {
    const { role } = message
    return role === 'system' || (points.has(index) && role !== 'assistant') ? marked(message) : message
  })
}

function marked(message: JsonObject): JsonObject {
  const { content } = message
  if (typeof content === 'string')
    return content === '' ? message : { ...message, content: [{ type: 'text', text: content, ...CACHED }] }
  if (!Array.isArray(content) || content.length === 0) return message
  return {
    ...message,
    content: content.map((part, index) => (index === content.length - 1 ? { ...part, ...CACHED } : part)),
  }
}

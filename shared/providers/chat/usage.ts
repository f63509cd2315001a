import type { Usage } from '../port.ts'

/** The token counts of a completion. Servers differ, so every field is checked before use. */
export type ChatUsage = {
  prompt_tokens?: unknown
  completion_tokens?: unknown
  total_tokens?: unknown
  prompt_tokens_details?: { cached_tokens?: unknown; cache_write_tokens?: unknown } | null
  completion_tokens_details?: { reasoning_tokens?: unknown } | null
}

/** `undefined` when the server has counted nothing. */
export function toUsage(usage: ChatUsage | undefined): Usage | undefined {
  const [input, output] = [toCount(usage?.prompt_tokens), outputOf(usage)]
  if (input === 0 && output === 0) return undefined
  const details = usage?.prompt_tokens_details
  return { input, cacheRead: toCount(details?.cached_tokens), cacheWrite: toCount(details?.cache_write_tokens), output }
}

/** xAI counts reasoning beside `completion_tokens`, all others within: the total tells. */
function outputOf(usage: ChatUsage | undefined): number {
  const completion = toCount(usage?.completion_tokens)
  const reasoning = toCount(usage?.completion_tokens_details?.reasoning_tokens)
  const isBeside = toCount(usage?.total_tokens) === toCount(usage?.prompt_tokens) + completion + reasoning
  return isBeside ? completion + reasoning : completion
}

const toCount = (tokens: unknown) => (typeof tokens === 'number' ? tokens : 0)

import type { CountedUsage } from '../port.ts'
import { checkedUsage } from '../token-counts.ts'

/** The token counts of a completion. Servers differ, so every field is checked before use. */
export type ChatUsage = {
  prompt_tokens?: unknown
  completion_tokens?: unknown
  total_tokens?: unknown
  prompt_tokens_details?: { cached_tokens?: unknown; cache_write_tokens?: unknown } | null
  completion_tokens_details?: { reasoning_tokens?: unknown } | null
}

/** `undefined` when the server has reported no counts, or none that are whole numbers. */
export function toUsage(usage: ChatUsage | undefined): CountedUsage | undefined {
  const details = usage?.prompt_tokens_details
  return checkedUsage({
    input: isMissing(usage?.prompt_tokens) ? undefined : toNumber(usage?.prompt_tokens),
    cacheRead: toNumber(details?.cached_tokens),
    cacheWrite: toNumber(details?.cache_write_tokens),
    output: isMissing(usage?.completion_tokens) ? outputOf(usage) || undefined : outputOf(usage),
  })
}

/** xAI does not include reasoning in `completion_tokens`, all others do: the total shows which. */
function outputOf(usage: ChatUsage | undefined): number {
  const completion = toNumber(usage?.completion_tokens)
  const reasoning = toNumber(usage?.completion_tokens_details?.reasoning_tokens)
  const isBeside = toNumber(usage?.total_tokens) === toNumber(usage?.prompt_tokens) + completion + reasoning
  return isBeside ? completion + reasoning : completion
}

/** Servers leave counts out, or send null. */
const isMissing = (tokens: unknown): boolean => tokens === undefined || tokens === null

const toNumber = (tokens: unknown): number => (isMissing(tokens) ? 0 : typeof tokens === 'number' ? tokens : Number.NaN)

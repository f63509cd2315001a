import type { JsonObject } from '../../../../shared/kernel/events.ts'

/** A text of the model, or its thinking, each an item of a response with one part. */
export type Block = 'text' | 'thinking'
/** A block that is being written. `index` is its place in the output. */
export type OpenBlock = { block: Block; id: string; index: number; text: string }

/** The beginnings of the names of events. */
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

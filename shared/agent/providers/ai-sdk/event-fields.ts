import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import type { VendorDialect } from './vendors.ts'

/**
 * Reads the events of one answer before the package, which checks every field of each event, needed or not. `fit` returns an event
 * that the package accepts: fields that the engine does not need are left out or filled in.
 */
export interface EventFields {
  /** The model has sent its finish reason: only token counts may follow. */
  readonly isFinished: boolean
  fit(event: JsonObject): JsonObject
  /** The events that are missing in a finished answer when its stream ends. */
  rest(): JsonObject[]
}

export const createEventFields = (dialect: VendorDialect): EventFields => new FIELDS[dialect]()

/** Servers that copy Anthropic's format leave out token counts, indexes and empty texts. */
class AnthropicFields implements EventFields {
  isFinished = false
  #isStopped = false
  #index = -1
  #delta: JsonObject = {}

  fit(event: JsonObject): JsonObject {
    const { type } = event
    if (type === 'message_start') {
      const { id, model, usage } = objectOf(event['message'])
      return { type, message: { id: textOf(id), model: textOf(model), usage: { input_tokens: 0, ...countsIn(usage) } } }
    }
    if (type === 'message_delta') return this.#end(event)
    if (type === 'message_stop') this.#isStopped = true
    return typeof type === 'string' && type.startsWith('content_block_') ? this.#fitBlock(event) : event
  }

  rest(): JsonObject[] {
    return this.isFinished && !this.#isStopped ? [{ type: 'message_stop' }] : []
  }

  #fitBlock(event: JsonObject): JsonObject {
    const isStart = event['type'] === 'content_block_start'
    this.#index = numberOf(event['index']) ?? this.#index + (isStart ? 1 : 0)
    const block = isStart && { content_block: anthropicBlock(objectOf(event['content_block']), this.#index) }
    return block || event['index'] !== this.#index ? { ...event, index: this.#index, ...block } : event
  }

  /** Some servers send token counts once more, in an event without a reason. */
  #end({ type, delta, usage }: JsonObject): JsonObject {
    const { stop_reason, stop_sequence } = objectOf(delta)
    if (textOf(stop_reason)) this.#delta = { stop_reason, stop_sequence: textOf(stop_sequence) }
    this.isFinished = 'stop_reason' in this.#delta
    return { type, delta: this.#delta, usage: { output_tokens: 0, ...countsIn(usage) } }
  }
}

const EMPTY_BLOCKS: Record<string, (block: JsonObject, index: number) => JsonObject> = {
  text: () => ({ text: '' }),
  thinking: () => ({ thinking: '' }),
  tool_use: (_block, index) => ({ id: `toolu_${index}`, input: {} }),
}

function anthropicBlock(block: JsonObject, index: number): JsonObject {
  const given = Object.entries(block).filter(([, value]) => value !== null)
  return { ...EMPTY_BLOCKS[String(block['type'])]?.(block, index), ...Object.fromEntries(given) }
}

class GoogleFields implements EventFields {
  isFinished = false

  fit(event: JsonObject): JsonObject {
    if ('error' in event && isJsonObject(event['error'])) return event
    const { responseId, candidates, usageMetadata, promptFeedback } = event
    const { blockReason } = objectOf(promptFeedback)
    const read = listOf(candidates).filter(isJsonObject).map(googleCandidate)
    this.isFinished ||= read.some(({ finishReason }) => finishReason !== undefined)
    return {
      responseId: textOf(responseId),
      ...(Array.isArray(candidates) && { candidates: read }),
      ...(isJsonObject(usageMetadata) && { usageMetadata: countsIn(usageMetadata) }),
      ...(textOf(blockReason) && { promptFeedback: { blockReason } }),
    }
  }

  rest(): JsonObject[] {
    return []
  }
}

/** The parts of a candidate that are used: texts, calls and their signatures. */
function googleCandidate({ content, finishReason, finishMessage }: JsonObject): JsonObject {
  const parts = listOf(objectOf(content)['parts']).filter(isJsonObject)
  const isRead = ({ text, functionCall, thoughtSignature }: JsonObject) =>
    [text, thoughtSignature].some((each) => typeof each === 'string') || isJsonObject(functionCall)
  return {
    content: { parts: parts.filter(isRead) },
    finishReason: textOf(finishReason),
    finishMessage: textOf(finishMessage),
  }
}

/** Servers that copy OpenAI's responses leave out ids, places and statuses, and report fewer counts. */
class ResponsesFields implements EventFields {
  isFinished = false
  #index = -1
  #itemId = ''

  fit(event: JsonObject): JsonObject {
    const type = textOf(event['type']) ?? ''
    const response = objectOf(event['response'])
    if (type === 'response.created' || type === 'response.in_progress') {
      const { id, created_at, model } = response
      return {
        type,
        response: { id: textOf(id) ?? '', created_at: numberOf(created_at) ?? 0, model: textOf(model) ?? '' },
      }
    }
    if (type === 'response.completed' || type === 'response.incomplete') {
      this.isFinished = true
      return { type, response: ending(response) }
    }
    if (type === 'response.output_item.added' || type === 'response.output_item.done') return this.#fitItem(event)
    if (type === 'error' || type === 'response.failed') return { sequence_number: 0, ...event }
    if (type === 'response.output_text.annotation.added') return { type: 'left_out' }
    return this.#isOfItem(type) ? this.#fitPiece(event) : event
  }

  rest(): JsonObject[] {
    return []
  }

  #isOfItem = (type: string) =>
    /^response\.(?:output_text|refusal|function_call_arguments|reasoning_summary)/.test(type)

  #fitPiece(piece: JsonObject): JsonObject {
    const { item_id, output_index, summary_index } = piece
    return {
      ...piece,
      logprobs: null,
      item_id: textOf(item_id) ?? this.#itemId,
      output_index: numberOf(output_index) ?? this.#index,
      summary_index: numberOf(summary_index) ?? 0,
    }
  }

  #fitItem({ type, output_index, item: given }: JsonObject): JsonObject {
    const item = objectOf(given)
    this.#index = numberOf(output_index) ?? this.#index + (type === 'response.output_item.added' ? 1 : 0)
    const id = textOf(item['id']) ?? textOf(item['call_id']) ?? `item_${this.#index}`
    this.#itemId = id
    return { type, output_index: this.#index, item: { ...responsesItem(item, id), id } }
  }
}

function responsesItem(item: JsonObject, id: string): JsonObject {
  const { type, name, arguments: input, call_id, status } = item
  if (type === 'message') return { type }
  if (type !== 'function_call') return item
  return {
    type,
    name,
    call_id: textOf(call_id) ?? id,
    arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
    status: textOf(status) ?? 'completed',
  }
}

function ending({ incomplete_details, service_tier: tier, usage }: JsonObject): JsonObject {
  const { reason } = objectOf(incomplete_details)
  const { input_tokens_details, output_tokens_details } = objectOf(usage)
  return {
    ...(textOf(reason) && { incomplete_details: { reason } }),
    ...(textOf(tier) && { service_tier: tier }),
    ...(isJsonObject(usage) && {
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        ...countsIn(usage),
        input_tokens_details: countsIn(input_tokens_details),
        output_tokens_details: countsIn(output_tokens_details),
      },
    }),
  }
}

const FIELDS: Record<VendorDialect, new () => EventFields> = {
  anthropic: AnthropicFields,
  google: GoogleFields,
  'openai-responses': ResponsesFields,
}

/** Replaces a count that is not a number by -1, which means unknown: the usage is then estimated. */
const countsIn = (usage: unknown): JsonObject =>
  Object.fromEntries(
    Object.entries(objectOf(usage)).flatMap(([name, count]) => {
      if (!/token/i.test(name) || count === null || typeof count === 'object') return []
      return [[name, numberOf(count) ?? -1]]
    }),
  )

const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { JsonObject } from '../../../kernel/events.ts'
import { CallInput, isJson, isSameCall } from '../call-input.ts'
import { endingOf } from '../finish-reasons.ts'
import type { CountedUsage, ModelPart } from '../port.ts'
import { checkedUsage } from '../token-counts.ts'

type StreamPart<Type extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: Type }>

type Source = { namespace: string }

type FinishReason = Extract<ModelPart, { type: 'finish' }>['reason']

type Call = Extract<ModelPart, { type: 'tool_call' }>

const NOTHING: readonly ModelPart[] = []

/** Converts the package's parts of one answer into `ModelPart`s: blocks without ids, one open at a time. Unknown parts are skipped. */
export class PartReader {
  /** The answer's tool calls. They run only when the answer is complete, so they follow its end. */
  readonly calls: Call[] = []
  hasText = false
  readonly #inputs = new Map<string, CallInput>()
  readonly #source: Source
  #openBlock: 'text' | 'thinking' | undefined
  #isBlockEmpty = true
  #meta: JsonObject | undefined

  constructor(source: Source) {
    this.#source = source
  }

  read(part: LanguageModelV4StreamPart): readonly ModelPart[] {
    if (part.type === 'text-delta') {
      return part.delta === '' ? NOTHING : this.#addDelta({ type: 'text_delta', text: part.delta }, 'text')
    }
    if (part.type === 'text-end') return this.#openBlock === 'text' ? this.#closeBlock() : NOTHING
    if (part.type === 'reasoning-start') return this.#startThinking(part)
    if (part.type === 'reasoning-delta') return this.#addThinking(part)
    if (part.type === 'reasoning-end') return this.#endThinking(part)
    if (part.type === 'tool-input-delta') this.#addInput(part)
    return part.type === 'tool-call' && !part.providerExecuted ? this.#addCall(part) : NOTHING
  }

  /** Converts the finish reason; `undefined` when the answer did not end regularly. */
  toFinishReason({ unified, raw }: LanguageModelV4FinishReason): FinishReason | undefined {
    // Only the responses API sends no reason when the answer is complete.
    const ending = raw === undefined && (unified === 'stop' || unified === 'tool-calls') ? 'stop' : endingOf(raw ?? '')
    if (ending === undefined || ending === 'filtered') return undefined
    if (ending === 'length') return 'max_tokens'
    if (this.calls.length > 0) return 'tool_use'
    return ending === 'stop_sequence' ? 'stop_sequence' : 'end_turn'
  }

  #addDelta(delta: Extract<ModelPart, { text: string }>, kind: 'text' | 'thinking'): readonly ModelPart[] {
    const ended = this.#openBlock === kind ? NOTHING : this.#closeBlock()
    this.#openBlock = kind
    this.#isBlockEmpty = false
    if (kind === 'text') this.hasText = true
    return ended.length === 0 ? [delta] : [...ended, delta]
  }

  #startThinking({ providerMetadata }: StreamPart<'reasoning-start'>): readonly ModelPart[] {
    const ended = this.#closeBlock()
    this.#openBlock = 'thinking'
    this.#collectMeta(providerMetadata)
    return ended
  }

  /** A signature is sent with an empty delta. */
  #addThinking({ delta, providerMetadata }: StreamPart<'reasoning-delta'>): readonly ModelPart[] {
    const parts = delta === '' ? NOTHING : this.#addDelta({ type: 'thinking_delta', text: delta }, 'thinking')
    this.#collectMeta(providerMetadata)
    return parts
  }

  #endThinking({ providerMetadata }: StreamPart<'reasoning-end'>): readonly ModelPart[] {
    this.#collectMeta(providerMetadata)
    return this.#openBlock === 'thinking' ? this.#closeBlock() : NOTHING
  }

  #addInput({ id, delta }: StreamPart<'tool-input-delta'>): void {
    const input = this.#inputs.get(id) ?? new CallInput()
    this.#inputs.set(id, input)
    input.add(delta)
  }

  /** A call that is sent twice is added once. */
  #addCall({ toolCallId, toolName, input: whole, providerMetadata }: StreamPart<'tool-call'>): readonly ModelPart[] {
    const ended = this.#closeBlock()
    const input = isJson(whole) ? whole : (this.#inputs.get(toolCallId)?.text ?? whole)
    const own = providerMetadata?.[this.#source.namespace]
    const meta = own && { meta: { [this.#source.namespace]: own } }
    const call: Call = { type: 'tool_call', id: toolCallId, toolName, input, ...meta }
    const at = this.calls.findIndex((earlier) => isSameCall(earlier, call))
    const earlier = this.calls[at]
    if (earlier) this.calls[at] = isJson(earlier.input) ? earlier : { ...earlier, ...call }
    else this.calls.push(call)
    return ended
  }

  #collectMeta(metadata: StreamPart<'reasoning-end'>['providerMetadata']): void {
    const own = metadata?.[this.#source.namespace]
    if (own) this.#meta = { ...this.#meta, ...own }
  }

  /** Ends the open block. Empty thinking is dropped, unless it has data that must be sent back, like redacted thinking. */
  #closeBlock(): readonly ModelPart[] {
    const [kind, isEmpty, own] = [this.#openBlock, this.#isBlockEmpty, this.#meta]
    this.#openBlock = undefined
    this.#isBlockEmpty = true
    this.#meta = undefined
    if (kind === 'text') return [{ type: 'text_end' }]
    if (kind === undefined || (isEmpty && !own)) return NOTHING
    return [{ type: 'thinking_end', ...(own && { meta: { [this.#source.namespace]: own } }) }]
  }
}

/** `undefined` when the provider has reported no counts. */
export function toUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): CountedUsage | undefined {
  return checkedUsage({
    input: inputTokens.total === 0 ? undefined : inputTokens.total, // The packages put 0 for a count that is missing.
    cacheRead: inputTokens.cacheRead ?? 0,
    cacheWrite: inputTokens.cacheWrite ?? 0,
    output: outputTokens.total === 0 ? undefined : outputTokens.total,
  })
}

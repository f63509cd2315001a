import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { JsonObject } from '../../events.ts'
import type { ModelPart, Usage } from '../port.ts'

type StreamPart<Type extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: Type }>

type Source = { namespace: string }

type FinishReason = Extract<ModelPart, { type: 'finish' }>['reason']

const NOTHING: readonly ModelPart[] = []

/** Turns the parts of one answer into ours: blocks without ids, one open at a time. Parts it does not know are skipped. */
export class PartReader {
  /** Whether the answer holds anything so far. */
  hasSaid = false
  readonly #source: Source
  #hasCalls = false
  #open: 'text' | 'thinking' | undefined
  #isEmpty = true
  #meta: JsonObject | undefined

  constructor(source: Source) {
    this.#source = source
  }

  take(part: LanguageModelV4StreamPart): readonly ModelPart[] {
    if (part.type === 'text-delta') {
      return part.delta === '' ? NOTHING : this.#say({ type: 'text_delta', text: part.delta }, 'text')
    }
    if (part.type === 'text-end') return this.#open === 'text' ? this.#close() : NOTHING
    if (part.type === 'reasoning-start') return this.#startThinking(part)
    if (part.type === 'reasoning-delta') return this.#think(part)
    if (part.type === 'reasoning-end') return this.#endThinking(part)
    return part.type === 'tool-call' && !part.providerExecuted ? this.#call(part) : NOTHING
  }

  /** What the end of the answer means; `undefined` when it is no good end. */
  finish({ unified, raw }: LanguageModelV4FinishReason): FinishReason | undefined {
    if (unified === 'length') return 'max_tokens'
    const isGood = unified === 'stop' || unified === 'tool-calls' || (unified === 'other' && this.hasSaid)
    if (!isGood) return undefined
    // Some servers say `stop` although they call tools, and `tool_calls` although they do not.
    if (this.#hasCalls) return 'tool_use'
    return raw === 'stop_sequence' ? 'stop_sequence' : 'end_turn'
  }

  #say(delta: Extract<ModelPart, { text: string }>, kind: 'text' | 'thinking'): readonly ModelPart[] {
    this.hasSaid = true
    const isGoingOn = this.#open === kind
    const ended = isGoingOn ? NOTHING : this.#close()
    this.#open = kind
    this.#isEmpty = false
    return ended.length === 0 ? [delta] : [...ended, delta]
  }

  #startThinking({ providerMetadata }: StreamPart<'reasoning-start'>): readonly ModelPart[] {
    const ended = this.#close()
    this.#open = 'thinking'
    this.#remember(providerMetadata)
    return ended
  }

  /** Signatures come with an empty delta. */
  #think({ delta, providerMetadata }: StreamPart<'reasoning-delta'>): readonly ModelPart[] {
    const parts = delta === '' ? NOTHING : this.#say({ type: 'thinking_delta', text: delta }, 'thinking')
    this.#remember(providerMetadata)
    return parts
  }

  #endThinking({ providerMetadata }: StreamPart<'reasoning-end'>): readonly ModelPart[] {
    this.#remember(providerMetadata)
    return this.#open === 'thinking' ? this.#close() : NOTHING
  }

  #call({ toolCallId, toolName, input, providerMetadata }: StreamPart<'tool-call'>): readonly ModelPart[] {
    const ended = this.#close()
    this.hasSaid = true
    this.#hasCalls = true
    const own = providerMetadata?.[this.#source.namespace]
    const meta = own && { meta: { [this.#source.namespace]: own } }
    return [...ended, { type: 'tool_call', id: toolCallId, toolName, input, ...meta }]
  }

  #remember(metadata: StreamPart<'reasoning-end'>['providerMetadata']): void {
    const own = metadata?.[this.#source.namespace]
    if (own) this.#meta = { ...this.#meta, ...own }
  }

  /** Ends the open block. One without a word is only worth telling when the provider wants its data back, as redacted thinking. */
  #close(): readonly ModelPart[] {
    const [kind, isEmpty, own] = [this.#open, this.#isEmpty, this.#meta]
    this.#open = undefined
    this.#isEmpty = true
    this.#meta = undefined
    if (kind === 'text') return [{ type: 'text_end' }]
    if (kind === undefined || (isEmpty && !own)) return NOTHING
    this.hasSaid = true
    return [{ type: 'thinking_end', ...(own && { meta: { [this.#source.namespace]: own } }) }]
  }
}

export function toUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): Usage {
  return {
    input: inputTokens.total ?? 0,
    cacheRead: inputTokens.cacheRead ?? 0,
    cacheWrite: inputTokens.cacheWrite ?? 0,
    output: outputTokens.total ?? 0,
  }
}

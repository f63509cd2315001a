import type { Failure, ModelRequest } from './port.ts'

/** The optional parts of a request, and how servers name them when they refuse them. */
const NAMES = {
  max_tokens: /max_tokens/i,
  max_completion_tokens: /max_completion_tokens/i,
  max_output_tokens: /max_?(?:output_?)?tokens|num_predict/i,
  temperature: /temperature/i,
  reasoning_effort: /reasoning|think|effort/i,
  parallel_tool_calls: /parallel_?tool/i,
  tool_choice: /tool_?choice|forced? (?:tool|function)/i,
  options: /\boptions\b|num_ctx/i,
  prompt_cache_key: /prompt_cache_key/i,
  stream_options: /stream_options|include_usage/i,
  tools: /(?:support|capab|enabl|accept).*\btools?\b|\btools?\b.*(?:support|capab|enabl|accept)/is,
  attachments:
    /(?:support|accept|capab|vision|modal|missing data|unknown variant).*(?:image|file|media|pdf|document)|(?:image|file|media|pdf|document).*(?:support|accept|capab)/is,
  service_tier: /service_?tier|\bflex\b/i,
  flex: /service_?tier|\bflex\b/i,
  stop: /\bstop(?:_sequences)?\b/i,
} satisfies Record<string, RegExp>

export type OptionalPart = keyof typeof NAMES

const NO_TOOLS: ModelRequest['tools'] = []

/** For how many models refusals are remembered. */
const MAX_MODELS = 64

/** The parts of requests that a server's models have refused. Each is logged once. */
export class LeftOut {
  readonly #type: string
  readonly #onLeftOut: (message: string) => void
  readonly #parts = new Map<string, Set<string>>()

  constructor(type: string, onLeftOut: (message: string) => void = () => {}) {
    this.#type = type
    this.#onLeftOut = onLeftOut
  }

  has(model: string, part: OptionalPart): boolean {
    return this.#parts.get(model)?.has(part) === true
  }

  takenTools({ model, tools }: Pick<ModelRequest, 'model' | 'tools'>): ModelRequest['tools'] {
    return this.has(model, 'tools') ? NO_TOOLS : tools
  }

  /** Remembers and logs that a part is left out. */
  add(model: string, part: string): void {
    const parts = this.#parts.get(model) ?? new Set()
    if (parts.has(part)) return
    if (this.#parts.size >= MAX_MODELS) this.#parts.clear()
    this.#parts.set(model, parts.add(part))
    this.#onLeftOut(`${this.#type} does not take ${part} for ${model}: it is left out`)
  }

  /** Whether the failure names a part that was sent: the request may then be sent again without it. */
  learn(model: string, { code, message }: Failure, sent: readonly string[]): boolean {
    if (code !== 'provider_rejected') return false
    const refused = sent.filter(isOptional).filter((part) => !this.has(model, part) && NAMES[part].test(message))
    for (const part of refused) this.add(model, part)
    return refused.length > 0
  }
}

/** Other options, such as additional headers, are never left out. */
const isOptional = (part: string): part is OptionalPart => Object.hasOwn(NAMES, part)

import { type Batched, eachOf } from '../../../kernel/async/batch.ts'
import { type RecordedSpan, startSpan } from '../../../kernel/trace.ts'
import type { ModelPart, ModelProvider, ModelRequest } from '../port.ts'

/** The names of OpenTelemetry's semantic conventions for generative AI, for types whose names differ there. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { google: 'gcp.gemini' }

/** Calls the model, and records a span that ends with the parts of the call. Returns the parts unchanged when nothing is recorded. */
export function tracedAnswer(
  provider: ModelProvider,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncIterator<Batched<ModelPart>> {
  const { model } = request
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': PROVIDER_NAMES[provider.type] ?? provider.type,
    'gen_ai.request.model': model,
  }
  const span = startSpan(`chat ${model}`, { kind: 'client', attributes })
  const parts = provider.stream(request, signal)[Symbol.asyncIterator]()
  return span ? new TracedParts(parts, span) : parts
}

class TracedParts implements AsyncIterator<Batched<ModelPart>> {
  readonly #parts: AsyncIterator<Batched<ModelPart>>
  #span: RecordedSpan | undefined

  constructor(parts: AsyncIterator<Batched<ModelPart>>, span: RecordedSpan) {
    this.#parts = parts
    this.#span = span
  }

  async next(): Promise<IteratorResult<Batched<ModelPart>>> {
    const result = await this.#parts.next()
    if (result.done) this.#end('aborted')
    else for (const part of eachOf(result.value)) this.#read(part)
    return result
  }

  async return(): Promise<IteratorResult<Batched<ModelPart>>> {
    this.#end()
    await this.#parts.return?.()
    return { done: true, value: undefined }
  }

  #read(part: ModelPart): void {
    if (part.type === 'failure') this.#end(part.failure.code)
    if (part.type !== 'finish') return
    const { usage, reason } = part
    this.#span?.set({
      'gen_ai.response.finish_reasons': [reason],
      'gen_ai.usage.input_tokens': usage?.input,
      'gen_ai.usage.output_tokens': usage?.output,
      'gen_ai.usage.cache_read.input_tokens': usage?.cacheRead || undefined,
      'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWrite || undefined,
    })
    this.#end()
  }

  #end(errorType?: string): void {
    this.#span?.end(errorType)
    this.#span = undefined
  }
}

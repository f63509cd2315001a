import type { StructuredOutput } from '../../../agent/providers/port.ts'
import type { FlowRoute } from '../port.ts'

/** Reads the stored probe of a model; `undefined` when none is stored. */
export type SupportsStructuredOutput = (instance: string, model: string) => Promise<boolean | undefined>

/** Decides for one call at which models the provider's own feature for structured output is used. */
export class StructuredOutputs {
  readonly #supports: SupportsStructuredOutput
  readonly #known = new Map<string, Promise<boolean>>()

  constructor(supports: SupportsStructuredOutput) {
    this.#supports = supports
  }

  /** `undefined` when the model is known not to have the feature, or the provider has rejected it in this call. */
  async formFor({ instance, model }: FlowRoute, form: StructuredOutput): Promise<StructuredOutput | undefined> {
    const key = keyOf({ instance, model })
    const known = this.#known.get(key) ?? this.#ask(instance, model)
    this.#known.set(key, known)
    return (await known) ? form : undefined
  }

  /** The provider has rejected a request with the feature: it is not used for this model any more. */
  refuse(route: FlowRoute): void {
    this.#known.set(keyOf(route), Promise.resolve(false))
  }

  /** Without an answer from the store the feature is tried: a rejection costs one request. */
  async #ask(instance: string, model: string): Promise<boolean> {
    return (await this.#supports(instance, model).catch(() => undefined)) !== false
  }
}

/** A name of an instance holds no blank. */
const keyOf = ({ instance, model }: FlowRoute): string => `${instance} ${model}`

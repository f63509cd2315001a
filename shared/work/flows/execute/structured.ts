import type { NativeForm } from '../../../agent/engine/answers/typed-answer.ts'
import type { FlowRoute } from '../port.ts'

/** Reads the stored probe of a model; `undefined` when none is stored. */
export type SupportsStructuredOutput = (instance: string, model: string) => Promise<boolean | undefined>

/** Decides for one call for which models the provider's own feature for structured output is used. */
export class StructuredOutputs {
  readonly #supports: SupportsStructuredOutput
  readonly #known = new Map<string, Promise<boolean>>()

  constructor(supports: SupportsStructuredOutput) {
    this.#supports = supports
  }

  /** It is not used if the model is known not to have the feature, or the provider has rejected it in this call. */
  of(route: FlowRoute): NativeForm {
    const key = keyOf(route)
    return {
      isUsed: () => {
        const known = this.#known.get(key) ?? this.#ask(route.instance, route.model)
        this.#known.set(key, known)
        return known
      },
      refuse: () => void this.#known.set(key, Promise.resolve(false)),
    }
  }

  /** Without an answer from the store the feature is tried: a rejection costs one request. */
  async #ask(instance: string, model: string): Promise<boolean> {
    return (await this.#supports(instance, model).catch(() => undefined)) !== false
  }
}

/** A name of an instance holds no blank. */
const keyOf = ({ instance, model }: FlowRoute): string => `${instance} ${model}`

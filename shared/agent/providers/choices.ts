import type { ModelOptions } from '../../kernel/model-options.ts'
import type { ModelRequest } from './port.ts'

/** The options of an instance with the choices of one run (D42). The instance's limit of output tokens is never raised. */
export function chosenOptions(options: ModelOptions, { choices }: Pick<ModelRequest, 'choices'>): ModelOptions {
  if (!choices) return options
  const { temperature, effort, maxOutputTokens } = choices
  const { max_output_tokens: limit = Number.POSITIVE_INFINITY } = options
  return {
    ...options,
    ...(temperature !== undefined && { temperature }),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: Math.min(maxOutputTokens, limit) }),
  }
}

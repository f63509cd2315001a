import { PROVIDER_NAMES } from '../../kernel/provider-types.ts'
import { field, headerValues, optional, queryValues, secret } from './field.ts'
import { modelOptions } from './json-values.ts'
import { httpUrl, modelName, oneOf, token } from './values.ts'

/** The settings of the default model (`MODEL`, …) or of the server-wide fallback (`FALLBACK_MODEL`, …). */
export function targetFields(prefix: 'MODEL' | 'FALLBACK_MODEL') {
  const [model, provider] = prefix === 'MODEL' ? ['default model', 'its'] : ['fallback model', "the fallback's"]
  return {
    model: field(prefix, optional(modelName), `Id of the ${model}.`),
    provider: field(
      `${prefix}_PROVIDER`,
      optional(oneOf(...PROVIDER_NAMES)),
      `Provider of the ${model}: ${PROVIDER_NAMES.join(', ')}.`,
    ),
    baseUrl: field(
      `${prefix}_BASE_URL`,
      { parse: httpUrl, secrets: queryValues, isShown: true },
      `Address of ${provider} provider as its documentation prints it, with or without the version, unless it is the usual one.`,
    ),
    apiKey: field(
      `${prefix}_API_KEY`,
      secret(token),
      `Key of ${provider} provider; its usual variable, such as OPENAI_API_KEY, works too.`,
    ),
    options: field(
      `${prefix}_OPTIONS`,
      secret(modelOptions, headerValues),
      `How the ${model} is called, as JSON: max_output_tokens, temperature, reasoning_effort, context_window, headers, timeout_secs, parallel_tool_calls, flex.`,
    ),
  }
}

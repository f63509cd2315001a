import type { ModelOptions } from '../../kernel/model-options.ts'
import { PROVIDER_NAMES, PROVIDER_TYPES, type ProviderType } from '../../kernel/provider-types.ts'

/** The environment as `process.env` holds it. */
export type Env = Readonly<Record<string, string | undefined>>

/** Tells whether the environment holds a variable. An empty one counts as unset. */
export type IsSet = (name: string) => boolean

/** A model that the operator configured, and how to reach it. Without `baseUrl` the provider's own address is used. */
export type ModelTarget = Readonly<{
  provider: ProviderType
  model: string
  baseUrl?: string
  apiKey?: string
  options?: ModelOptions
}>

/** The values of the variables `MODEL*` or `FALLBACK_MODEL*`. */
export type TargetParts = {
  model: string | undefined
  provider: ProviderType | undefined
  baseUrl: string | undefined
  apiKey: string | undefined
  options: ModelOptions | undefined
}

/** Builds a target from its variables; `undefined` when the provider or the model is not configured. */
export function toTarget(parts: TargetParts, env: Env): ModelTarget | undefined {
  const { provider, baseUrl, options } = parts
  if (provider === undefined) return undefined
  const { keyVariables, defaultModel } = PROVIDER_TYPES[provider]
  const model = parts.model ?? defaultModel
  if (model === undefined) return undefined
  const apiKey = parts.apiKey ?? keyVariables.map((name) => env[name]).find((key) => key !== undefined && key !== '')
  return Object.freeze({
    provider,
    model,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(apiKey !== undefined && { apiKey }),
    ...(options && { options }),
  })
}

/**
 * Finds variables that lack the one they need (D1.3b). `isSet` looks at the environment and not at parsed values, so that a
 * wrong value is not reported as a missing one too.
 */
export function targetProblems(prefix: string, provider: ProviderType | undefined, isSet: IsSet): (string | false)[] {
  const descriptor = provider && PROVIDER_TYPES[provider]
  const needsModel = descriptor !== undefined && descriptor.defaultModel === undefined
  const needsBaseUrl = needsModel && descriptor.baseUrl === undefined
  const orphans = ['', '_BASE_URL', '_API_KEY', '_OPTIONS'].map((suffix) => prefix + suffix).filter(isSet)
  return [
    !isSet(`${prefix}_PROVIDER`) &&
      orphans.length > 0 &&
      `${prefix}_PROVIDER is not set, but ${orphans.join(' and ')}: wanted one of ${PROVIDER_NAMES.join(', ')}`,
    needsModel && !isSet(prefix) && `${prefix} is not set, but ${prefix}_PROVIDER=${provider}: wanted the model's id`,
    needsBaseUrl &&
      !isSet(`${prefix}_BASE_URL`) &&
      `${prefix}_BASE_URL is not set, but ${prefix}_PROVIDER=${provider}: wanted the address of its API`,
  ]
}

/** The warning for a target that has no key although the provider's own address requires one. */
export function keyWarning(prefix: string, target: ModelTarget | undefined): string | false {
  if (target === undefined || target.apiKey !== undefined || target.baseUrl !== undefined) return false
  const { isKeyRequired, keyVariables } = PROVIDER_TYPES[target.provider]
  const [usual] = keyVariables
  return (
    isKeyRequired &&
    usual !== undefined &&
    `${prefix}_PROVIDER=${target.provider} has no key: set ${prefix}_API_KEY or ${usual}`
  )
}

/** The environment as `process.env` holds it. */
export type Env = Readonly<Record<string, string | undefined>>

/** Does the environment hold this variable? An empty one counts as unset. */
export type IsSet = (name: string) => boolean

export const PROVIDERS = ['openai', 'anthropic', 'google', 'openai-compatible', 'ollama', 'demo'] as const
export type ProviderType = (typeof PROVIDERS)[number]

/** A model the operator has configured, and how to reach it. Without `baseUrl` the provider's own address counts. */
export type ModelTarget = Readonly<{ provider: ProviderType; model: string; baseUrl?: string; apiKey?: string }>

/** Where a provider's users keep its key. None for `openai-compatible`: a key reaches only the provider it belongs to. */
const USUAL_KEYS: Record<ProviderType, readonly string[]> = {
  openai: ['OPENAI_API_KEY'],
  anthropic: ['ANTHROPIC_API_KEY'],
  google: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  'openai-compatible': [],
  ollama: ['OLLAMA_API_KEY'],
  demo: [],
}

/** What the variables `MODEL*` or `FALLBACK_MODEL*` hold. */
export type TargetParts = {
  model: string | undefined
  provider: ProviderType | undefined
  baseUrl: string | undefined
  apiKey: string | undefined
}

/** Puts the parts together; `undefined` when nothing, or not enough, is configured. */
export function toTarget(parts: TargetParts, env: Env): ModelTarget | undefined {
  const { provider, baseUrl } = parts
  const model = parts.model ?? (provider === 'demo' ? 'demo' : undefined)
  if (provider === undefined || model === undefined) return undefined
  const apiKey =
    parts.apiKey ?? USUAL_KEYS[provider].map((name) => env[name]).find((key) => key !== undefined && key !== '')
  return Object.freeze({
    provider,
    model,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(apiKey !== undefined && { apiKey }),
  })
}

/** The pairs of D1.3. `isSet` goes by name, so that a wrong value is not reported as a missing one too. */
export function targetProblems(prefix: string, provider: string | undefined, isSet: IsSet): (string | false)[] {
  const wantsModel = provider !== undefined && provider !== 'demo'
  const orphans = ['', '_BASE_URL', '_API_KEY'].map((suffix) => prefix + suffix).filter(isSet)
  return [
    !isSet(`${prefix}_PROVIDER`) &&
      orphans.length > 0 &&
      `${prefix}_PROVIDER is not set, but ${orphans.join(' and ')}: wanted one of ${PROVIDERS.join(', ')}`,
    wantsModel && !isSet(prefix) && `${prefix} is not set, but ${prefix}_PROVIDER=${provider}: wanted the model's id`,
    provider === 'openai-compatible' &&
      !isSet(`${prefix}_BASE_URL`) &&
      `${prefix}_BASE_URL is not set, but ${prefix}_PROVIDER=${provider}: wanted the address of its API`,
  ]
}

/** Providers that answer nobody without a key, at their own address. */
export function keyWarning(prefix: string, target: ModelTarget | undefined): string | false {
  if (target === undefined || target.apiKey !== undefined || target.baseUrl !== undefined) return false
  const [usual] = target.provider === 'ollama' ? [] : USUAL_KEYS[target.provider]
  return usual !== undefined && `${prefix}_PROVIDER=${target.provider} has no key: set ${prefix}_API_KEY or ${usual}`
}

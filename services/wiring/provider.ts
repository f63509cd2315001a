import type { ProviderType } from '../../shared/config-model.ts'
import { invalidRequest } from '../../shared/errors.ts'
import { openAiSdkProvider } from '../../shared/providers/ai-sdk.ts'
import { MODEL_LIMITS, type ModelLimits } from '../../shared/providers/ai-sdk-watch.ts'
import { createDemoProvider } from '../../shared/providers/demo.ts'
import type { ModelProvider } from '../../shared/providers/port.ts'

export type ProviderSettings = {
  type: ProviderType
  /** Replaces the provider's own address; `openai-compatible` has none of its own. */
  baseUrl?: string
  apiKey?: string
  /** Stands in for the pool of connections that each provider opens; it then has the limit for connecting to itself. */
  fetch?: typeof globalThis.fetch
  limits?: Partial<ModelLimits>
}

/** Opens a provider of one of the types of D1.3. Throws `invalid_request` when its address is missing or not an HTTP one. */
export async function openProvider(settings: ProviderSettings): Promise<ModelProvider> {
  const { type, baseUrl, limits, ...rest } = settings
  if (type === 'demo') return createDemoProvider()
  if (baseUrl === undefined && type === 'openai-compatible') {
    throw invalidRequest('openai-compatible needs the address of its API: set MODEL_BASE_URL')
  }
  if (baseUrl !== undefined && !isPlainHttp(URL.parse(baseUrl))) {
    throw invalidRequest('the address of the provider is not an http or https URL without a user: check MODEL_BASE_URL')
  }
  return openAiSdkProvider({
    type,
    ...(baseUrl !== undefined && { baseUrl }),
    ...rest,
    limits: { ...MODEL_LIMITS, ...limits },
  })
}

/** A user in the address would be refused by `fetch`, with the password in its error. */
const isPlainHttp = (url: URL | null) =>
  url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''

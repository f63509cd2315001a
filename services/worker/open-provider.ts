import type { ProviderType } from '../../shared/config/model.ts'
import { invalidRequest } from '../../shared/errors.ts'
import { openAiSdkProvider } from '../../shared/providers/ai-sdk/ai-sdk.ts'
import { createChatProvider } from '../../shared/providers/chat/chat.ts'
import type { Send } from '../../shared/providers/chat/transport.ts'
import { createDemoProvider } from '../../shared/providers/demo/demo.ts'
import { MODEL_LIMITS, type ModelLimits } from '../../shared/providers/limits.ts'
import type { ModelProvider } from '../../shared/providers/port.ts'

export type ProviderSettings = {
  type: ProviderType
  /** Replaces the provider's own address; `openai-compatible` has none of its own. */
  baseUrl?: string
  apiKey?: string
  /** These two stand in for the connections that each provider opens, and then have the limit for connecting to themselves. */
  fetch?: typeof globalThis.fetch
  /** For the providers that speak chat completions. */
  send?: Send
  limits?: Partial<ModelLimits>
}

/** Opens a provider of one of the types of D1.3. Throws `invalid_request` when its address is missing or not an HTTP one. */
export async function openProvider({ fetch, send, ...settings }: ProviderSettings): Promise<ModelProvider> {
  const { type, baseUrl } = settings
  if (type === 'demo') return createDemoProvider()
  if (baseUrl === undefined && type === 'openai-compatible') {
    throw invalidRequest('openai-compatible needs the address of its API: set MODEL_BASE_URL')
  }
  if (baseUrl !== undefined && !isPlainHttp(URL.parse(baseUrl))) {
    throw invalidRequest('the address of the provider is not an http or https URL without a user: check MODEL_BASE_URL')
  }
  const limits = { ...MODEL_LIMITS, ...settings.limits }
  if (type === 'anthropic' || type === 'google' || (type === 'openai' && isOpenAi(baseUrl))) {
    return openAiSdkProvider({ ...settings, type, ...(fetch && { fetch }), limits })
  }
  return createChatProvider({ ...settings, type, ...(send && { send }), limits })
}

/** A user in the address would be refused by `fetch`, with the password in its error. */
const isPlainHttp = (url: URL | null) =>
  url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''

/** Any other address is a gateway, and those speak chat completions, not OpenAI's newer API. */
const isOpenAi = (baseUrl: string | undefined) =>
  baseUrl === undefined || /(?:^|\.)openai\.com$/.test(new URL(baseUrl).hostname)

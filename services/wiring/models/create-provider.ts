import { createAiSdkProvider } from '../../../shared/agent/providers/ai-sdk/ai-sdk.ts'
import { createChatProvider } from '../../../shared/agent/providers/chat/chat.ts'
import { createDemoProvider } from '../../../shared/agent/providers/demo/demo.ts'
import { MODEL_LIMITS, type ModelLimits } from '../../../shared/agent/providers/limits.ts'
import type { HttpsProxy, ModelProvider, Send } from '../../../shared/agent/providers/port.ts'
import { LeftOut } from '../../../shared/agent/providers/unsupported-options.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import type { ModelOptions } from '../../../shared/kernel/model-options.ts'
import { type Dialect, PROVIDER_TYPES, type ProviderType } from '../../../shared/kernel/provider-types.ts'

export type ProviderSettings = {
  type: ProviderType
  /** Replaces the provider's own address. Required for a type that has none, such as `openai-compatible`. */
  baseUrl?: string | undefined
  apiKey?: string | undefined
  /** Replaces the connections of the AI SDK adapter; must keep the limit for connecting itself. */
  fetch?: typeof globalThis.fetch | undefined
  /** Replaces the connections of the chat completions adapter; must keep the limit for connecting itself. */
  send?: Send | undefined
  /** For connections that neither `fetch` nor `send` replaces. */
  proxy?: HttpsProxy | undefined
  limits?: Partial<ModelLimits> | undefined
  options?: ModelOptions | undefined
  /** Name of the tenant's instance, for messages. */
  instance?: string | undefined
  /** Called once for each option that a model does not accept, with a message for the log. */
  onLeftOut?: ((message: string) => void) | undefined
}

/** Opens a provider of one of the types of D1.3 MODEL_PROVIDER. Throws `invalid_request` when its address is missing or not an HTTP one. */
export async function createProvider({ type, baseUrl, apiKey, ...settings }: ProviderSettings): Promise<ModelProvider> {
  const dialect = dialectAt(type, baseUrl)
  if (dialect === 'demo') return createDemoProvider()
  checkAddress(type, baseUrl)
  const { options = {} } = settings
  const common = {
    type,
    baseUrl,
    apiKey,
    limits: { ...limitsFor(options), ...settings.limits },
    options,
    instance: settings.instance,
    proxy: settings.proxy,
    leftOut: new LeftOut(type, settings.onLeftOut),
  }
  const provider =
    dialect === 'openai-chat'
      ? createChatProvider({ ...common, send: settings.send })
      : createAiSdkProvider({ ...common, dialect, fetch: settings.fetch })
  return Object.assign(provider, { maxOutputTokens: options.max_output_tokens })
}

/** `timeout_secs` limits the time to the first byte and between two bytes (D5.8). */
function limitsFor({ timeout_secs: seconds }: ModelOptions): ModelLimits {
  if (seconds === undefined) return MODEL_LIMITS
  const waitMs = 1_000 * seconds
  return { ...MODEL_LIMITS, firstByteMs: waitMs, idleMs: waitMs, turnMs: Math.max(MODEL_LIMITS.turnMs, 2 * waitMs) }
}

function dialectAt(type: ProviderType, baseUrl: string | undefined): Dialect {
  const { dialect, gateway } = PROVIDER_TYPES[type]
  if (baseUrl === undefined || !gateway) return dialect
  return gateway.ownHosts.test(URL.parse(baseUrl)?.hostname ?? '') ? dialect : gateway.dialect
}

function checkAddress(type: ProviderType, baseUrl: string | undefined): void {
  if (baseUrl === undefined && PROVIDER_TYPES[type].baseUrl === undefined) {
    throw invalidRequest(`${type} needs the address of its API: set MODEL_BASE_URL`)
  }
  if (baseUrl !== undefined && !isPlainHttp(URL.parse(baseUrl))) {
    throw invalidRequest('the address of the provider is not an http or https URL without a user: check MODEL_BASE_URL')
  }
}

/** A URL with a user is refused here, because `fetch` would refuse it with an error that shows the password. */
const isPlainHttp = (url: URL | null) =>
  url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''

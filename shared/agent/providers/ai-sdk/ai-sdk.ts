import type { LanguageModelV4 } from '@ai-sdk/provider'
import { fileKindOf } from '../../../kernel/attachment.ts'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import type { ProviderType } from '../../../kernel/provider-types.ts'
import { apiBase } from '../base-url.ts'
import type { CallWatch } from '../call-watch.ts'
import { type FailedCall, keyFailure } from '../failures/failures.ts'
import type { ModelLimits } from '../limits.ts'
import type { Failure, HttpsProxy, ModelPart, ModelProvider } from '../port.ts'
import type { LeftOut } from '../unsupported-options.ts'
import { createTransport, createWatchedFetch, type Fetch, withQueryOf } from './transport.ts'
import { streamTurn } from './turn.ts'
import { createVendor, type Vendor, type VendorDialect } from './vendors.ts'

export type AiSdkSettings = {
  type: ProviderType
  dialect: VendorDialect
  baseUrl: string | undefined
  apiKey: string | undefined
  /** Replaces the provider's own connections. Must honour its signal and return redirects when `redirect` is `manual`. */
  fetch: Fetch | undefined
  proxy: HttpsProxy | undefined
  limits: ModelLimits
  options: ModelOptions
  leftOut: LeftOut
  /** Name of the tenant's instance, for messages; `undefined` for the server's own provider. */
  instance: string | undefined
}

/** How many models' objects are kept: creating one builds the schema of its chunks. */
const MAX_MODELS = 64

/** Opens a provider with the AI SDK's package for its dialect. Only the package's `doStream` is used. */
export async function createAiSdkProvider(settings: AiSdkSettings): Promise<ModelProvider> {
  const { type, dialect, baseUrl, apiKey = '', limits, options, leftOut, instance } = settings
  const watches = new WeakMap<AbortSignal, CallWatch>()
  const base = apiBase(type, baseUrl)
  const transport = settings.fetch ?? (await createTransport({ connectMs: limits.connectMs, proxy: settings.proxy }))
  // Always given: without a base URL, the package would read one from the environment.
  const fetch = createWatchedFetch(withQueryOf(base, transport), { dialect, watches })
  const vendor = await createVendor(dialect, { baseURL: base.origin + base.pathname, apiKey, fetch })
  const models = new Map<string, LanguageModelV4>()
  const configFailure = keyFailure({ type, apiKey, instance }, baseUrl)
  return {
    type,
    instance,
    contextWindow: options.context_window,
    takesTools: (model) => !leftOut.has(model, 'tools'),
    takesFile: (_model, mediaType) => {
      const kind = fileKindOf(mediaType)
      return kind !== undefined && (kind !== 'audio' || vendor.takesAudio === true)
    },
    stream(request, signal) {
      if (configFailure) return failWith(configFailure)
      const call: FailedCall = { type, model: request.model, apiKey, instance }
      const model = modelFor(request.model, models, vendor)
      return streamTurn({ request, signal, call, model, vendor, limits, options, leftOut, watches })
    },
  }
}

async function* failWith(failure: Failure): AsyncGenerator<ModelPart, void, undefined> {
  yield { type: 'failure', failure }
}

function modelFor(id: string, models: Map<string, LanguageModelV4>, vendor: Vendor): LanguageModelV4 {
  const known = models.get(id)
  if (known) return known
  const [oldest] = models.keys()
  if (oldest !== undefined && models.size >= MAX_MODELS) models.delete(oldest)
  const model = vendor.model(id)
  models.set(id, model)
  return model
}

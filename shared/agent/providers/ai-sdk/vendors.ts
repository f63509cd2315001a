import type { LanguageModelV4, SharedV4ProviderMetadata, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { JsonObject } from '../../../kernel/events.ts'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import type { Dialect } from '../../../kernel/provider-types.ts'
import { promptCacheKey } from '../cache-key.ts'
import { FLEX, wantsFlex } from '../flex.ts'
import type { ModelRequest } from '../port.ts'
import { isStrictSchema } from '../strict-schema.ts'
import { ANTHROPIC_IDS, COMMON_IDS, type IdForm } from '../tool-ids.ts'

/** The dialects that use the AI SDK's packages. */
export type VendorDialect = Extract<Dialect, 'openai-responses' | 'anthropic' | 'google'>

/** A dialect as its package implements it, and the properties in which it differs from the others. */
export type Vendor = {
  /** The key of this dialect's data in a part's `meta`: signatures, item ids. Data of other keys is not sent to it. */
  namespace: string
  model(id: string): LanguageModelV4
  /** The answer names the stop sequence that ended it. Other dialects are sent none: the engine enforces them (D4.11). */
  reportsStops?: true
  providerOptions?: SharedV4ProviderOptions
  /** The setting for parallel tool calls, in the namespace; missing where the provider has none. */
  parallelToolCalls?(isAllowed: boolean): SharedV4ProviderOptions[string]
  /** Further settings, in the namespace, for every request. */
  settingsFor?(request: ModelRequest, options: ModelOptions): SharedV4ProviderOptions[string]
  /** Reads the service tier of an answer from its last metadata; missing for a provider without tiers. */
  tierOf?(metadata: SharedV4ProviderMetadata | undefined): unknown
  /** Further settings, in the namespace, for a request whose answer must be JSON that fits this schema. */
  structuredOutput?(schema: JsonObject): SharedV4ProviderOptions[string]
  /** Marks the end of a prefix to be cached; missing if the provider caches without marks. */
  cachePoint?: SharedV4ProviderOptions
  toolIds: IdForm
  /** The files that it accepts besides images and PDFs. Any other file is replaced by a text in the message. */
  takesAudio?: true
  takesTextFiles?: true
  /** Whether an error part only reports an event that the package does not know. */
  isIgnorable?(error: unknown): boolean
}

export type VendorSettings = { baseURL: string; apiKey: string; fetch: typeof globalThis.fetch }

export const createVendor = (dialect: VendorDialect, settings: VendorSettings): Promise<Vendor> =>
  OPENERS[dialect](settings)

/** A package takes some 22 MiB and 60 ms to load, so a process loads only the ones it uses. */
const OPENERS: Record<VendorDialect, (settings: VendorSettings) => Promise<Vendor>> = {
  'openai-responses': async (settings) => openAi((await import('@ai-sdk/openai')).createOpenAI(settings)),
  anthropic: async (settings) => anthropic((await import('@ai-sdk/anthropic')).createAnthropic(settings)),
  google: async (settings) => google((await import('@ai-sdk/google')).createGoogle(settings)),
}

type OpenAi = ReturnType<typeof import('@ai-sdk/openai').createOpenAI>

/** OpenAI stores nothing: every request carries the whole history, and reasoning is returned encrypted and sent back. */
const openAi = (provider: OpenAi): Vendor => ({
  namespace: 'openai',
  model: (id) => provider.responses(id),
  toolIds: COMMON_IDS,
  providerOptions: { openai: { store: false } },
  settingsFor: (request, options) => ({
    promptCacheKey: promptCacheKey(request),
    ...(wantsFlex(request, options) && { serviceTier: FLEX }),
  }),
  tierOf: (metadata) => metadata?.['openai']?.['serviceTier'],
  parallelToolCalls: (isAllowed) => ({ parallelToolCalls: isAllowed }),
  structuredOutput: (schema) => ({ strictJsonSchema: isStrictSchema(schema) }),
})

/** Tool inputs are not streamed: that would add a request field which some gateways do not know. */
const anthropic = (provider: (id: string) => LanguageModelV4): Vendor => ({
  namespace: 'anthropic',
  model: (id) => provider(id),
  reportsStops: true,
  providerOptions: { anthropic: { toolStreaming: false } },
  parallelToolCalls: (isAllowed) => ({ disableParallelToolUse: !isAllowed }),
  cachePoint: { anthropic: { cacheControl: { type: 'ephemeral' } } },
  toolIds: ANTHROPIC_IDS,
  takesTextFiles: true,
  isIgnorable: isUnknownAnthropicEvent,
})

const ANTHROPIC_EVENTS = /^(?:message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping|error)$/

/** Anthropic may add events at any time. The package checks each event against a schema and reports new ones as errors. */
function isUnknownAnthropicEvent(error: unknown): boolean {
  const type = (error as { value?: { type?: unknown } | null } | null)?.value?.type
  return typeof type === 'string' && !ANTHROPIC_EVENTS.test(type)
}

/** Ids that are safe in a URL path. Google's package puts the model's id there; any other id is encoded. */
const PATH_ID = /^(?!.*\.\.)[\w.:@/-]+$/

const google = (provider: (id: string) => LanguageModelV4): Vendor => ({
  namespace: 'google',
  model: (id) => provider(PATH_ID.test(id) ? id : encodeURIComponent(id.toWellFormed())),
  toolIds: COMMON_IDS,
  takesAudio: true,
  takesTextFiles: true,
})

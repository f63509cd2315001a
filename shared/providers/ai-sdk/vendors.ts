import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { ProviderType } from '../../config/model.ts'

export type VendorType = Extract<ProviderType, 'openai' | 'anthropic' | 'google'>

/** A wire format as its package speaks it, and what is particular to it. */
export type Vendor = {
  /** The key under which this format's own data travels with a part: signatures, item ids. Nothing else is sent back to it. */
  namespace: string
  model(id: string): LanguageModelV4
  /** How many stop sequences the provider takes. */
  maxStops: number
  providerOptions?: SharedV4ProviderOptions
  /** Marks where a prefix ends that is to be cached; missing where the provider caches by itself. */
  cachePoint?: SharedV4ProviderOptions
  /** Makes a tool call's id of another provider acceptable. */
  toolId?(id: string): string
  /** Is this error part only news that the package does not know yet? */
  mayIgnore?(error: unknown): boolean
}

export type VendorSettings = { baseUrl: string | undefined; apiKey: string; fetch: typeof globalThis.fetch }

/** The bases are always given: without one, a package would read the environment. */
const BASE_URL: Record<VendorType, string> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
}

type Connect = { baseURL: string; apiKey: string; fetch: typeof globalThis.fetch }

/** Each package takes some 22 MiB and 60 ms to load, so a process loads those it calls and no other. */
const OPENERS: Record<VendorType, (to: Connect) => Promise<Vendor>> = {
  openai: async (to) => openAi((await import('@ai-sdk/openai')).createOpenAI(to)),
  anthropic: async (to) => anthropic((await import('@ai-sdk/anthropic')).createAnthropic(to)),
  google: async (to) => google((await import('@ai-sdk/google')).createGoogle(to)),
}

export function openVendor(
  type: VendorType,
  { baseUrl = BASE_URL[type], apiKey, fetch }: VendorSettings,
): Promise<Vendor> {
  return OPENERS[type]({ baseURL: baseUrl, apiKey, fetch })
}

type OpenAi = ReturnType<typeof import('@ai-sdk/openai').createOpenAI>

/**
 * The responses API: there alone OpenAI's reasoning models call tools while they reason. Nothing is stored at OpenAI: the
 * history is ours, and its reasoning comes back encrypted.
 */
const openAi = (provider: OpenAi): Vendor => ({
  namespace: 'openai',
  model: (id) => provider.responses(id),
  maxStops: 0,
  providerOptions: { openai: { store: false } },
})

/** Tool inputs are wanted whole: eager streaming would only add a field that gateways do not know. */
function anthropic(provider: (id: string) => LanguageModelV4): Vendor {
  return {
    namespace: 'anthropic',
    model: (id) => provider(id),
    maxStops: Number.POSITIVE_INFINITY,
    providerOptions: { anthropic: { toolStreaming: false } },
    cachePoint: { anthropic: { cacheControl: { type: 'ephemeral' } } },
    toolId: (id) => id.replace(/[^A-Za-z0-9_-]/g, '_'),
    mayIgnore: isNewEvent,
  }
}

/** A model's id becomes a part of Google's path: one that could lead elsewhere is made harmless, and so unknown. */
const PATH_ID = /^(?!.*\.\.)[\w.:@/-]+$/

const google = (provider: (id: string) => LanguageModelV4): Vendor => ({
  namespace: 'google',
  model: (id) => provider(PATH_ID.test(id) ? id : encodeURIComponent(id.toWellFormed())),
  maxStops: 5,
})

const EVENTS = /^(?:message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping|error)$/

/** Anthropic may add events at any time; the package, which checks each against a schema, reports them as errors. */
function isNewEvent(error: unknown): boolean {
  const type = (error as { value?: { type?: unknown } | null } | null)?.value?.type
  return typeof type === 'string' && !EVENTS.test(type)
}

import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { ProviderType } from '../config-model.ts'
import type { ProviderMeta } from './port.ts'

export type VendorType = Exclude<ProviderType, 'demo'>

/** A wire format as its package speaks it, and what is particular to it. */
export type Vendor = {
  /** The key under which this format's own data travels with a part: signatures, item ids. Nothing else is sent back to it. */
  namespace: string
  model(id: string): LanguageModelV4
  /** How many stop sequences the provider takes for this model. */
  maxStops(model: string): number
  providerOptions?: SharedV4ProviderOptions
  /** Makes a tool call's id of another provider acceptable. */
  toolId?(id: string): string
  /** Marks a block of thinking as this provider's own, where the package gives it no data. */
  thinkingMeta?(): ProviderMeta | undefined
  /** Is this error part only news that the package does not know yet? */
  mayIgnore?(error: unknown): boolean
  /** Thinking goes back only while its answer's tools are being called. */
  forgetsThinking?: boolean
}

export type VendorSettings = { baseUrl: string | undefined; apiKey: string; fetch: typeof globalThis.fetch }

/** The bases are always given: without one, a package would read the environment. */
const BASE_URL: Record<VendorType, string> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  'openai-compatible': '',
  ollama: 'http://127.0.0.1:11434/v1',
}

/** OpenAI's API and those made after it take four, but their reasoning models refuse to be called with any. */
const openAiStops = (model: string) => (/(?:^|\/)(?:o\d|gpt-[5-9]|grok-[3-9])/.test(model) ? 0 : 4)

type Connect = { baseURL: string; apiKey: string; fetch: typeof globalThis.fetch }

/** Each package takes some 22 MiB and 60 ms to load, so a process loads those it calls and no other. */
const OPENERS: Record<VendorType, (to: Connect) => Promise<Vendor>> = {
  openai: async (to) => openAi((await import('@ai-sdk/openai')).createOpenAI(to), to.baseURL),
  anthropic: async (to) => anthropic((await import('@ai-sdk/anthropic')).createAnthropic(to)),
  google: async (to) => google((await import('@ai-sdk/google')).createGoogle(to)),
  'openai-compatible': async (to) => compatible((await import('@ai-sdk/openai-compatible')).createOpenAICompatible, to),
  ollama: async (to) => compatible((await import('@ai-sdk/openai-compatible')).createOpenAICompatible, to),
}

export function openVendor(type: VendorType, { baseUrl, apiKey, fetch }: VendorSettings): Promise<Vendor> {
  return OPENERS[type]({ baseURL: baseUrlOf(type, baseUrl), apiKey, fetch })
}

function baseUrlOf(type: VendorType, baseUrl: string | undefined): string {
  if (baseUrl === undefined) return BASE_URL[type]
  const isBareHost = type === 'ollama' && new URL(baseUrl).pathname === '/'
  return isBareHost ? new URL('/v1', baseUrl).href : baseUrl
}

type OpenAi = ReturnType<typeof import('@ai-sdk/openai').createOpenAI>

/**
 * At OpenAI itself the responses API: there alone its reasoning models call tools while they reason. Any other address is a
 * gateway, and those speak chat completions. Nothing is stored at OpenAI: the history is ours, and its reasoning comes back encrypted.
 */
function openAi(provider: OpenAi, baseUrl: string): Vendor {
  if (!/(?:^|\.)openai\.com$/.test(new URL(baseUrl).hostname)) {
    return { namespace: 'openai', model: (id) => provider.chat(id), maxStops: openAiStops }
  }
  const providerOptions = { openai: { store: false } }
  return { namespace: 'openai', model: (id) => provider.responses(id), maxStops: () => 0, providerOptions }
}

/** Tool inputs are wanted whole: eager streaming would only add a field that gateways do not know. */
function anthropic(provider: (id: string) => LanguageModelV4): Vendor {
  return {
    namespace: 'anthropic',
    model: (id) => provider(id),
    maxStops: () => Number.POSITIVE_INFINITY,
    providerOptions: { anthropic: { toolStreaming: false } },
    toolId: (id) => id.replace(/[^A-Za-z0-9_-]/g, '_'),
    mayIgnore: isNewEvent,
  }
}

/** A model's id becomes a part of Google's path: one that could lead elsewhere is made harmless, and so unknown. */
const PATH_ID = /^(?!.*\.\.)[\w.:@/-]+$/

const google = (provider: (id: string) => LanguageModelV4): Vendor => ({
  namespace: 'google',
  model: (id) => provider(PATH_ID.test(id) ? id : encodeURIComponent(id.toWellFormed())),
  maxStops: () => 5,
})

const EVENTS = /^(?:message_(?:start|delta|stop)|content_block_(?:start|delta|stop)|ping|error)$/

/** Anthropic may add events at any time; the package, which checks each against a schema, reports them as errors. */
function isNewEvent(error: unknown): boolean {
  const type = (error as { value?: { type?: unknown } | null } | null)?.value?.type
  return typeof type === 'string' && !EVENTS.test(type)
}

/**
 * Of the servers made after OpenAI's some demand their `reasoning_content` back during tool calls (DeepSeek, Kimi) and others
 * refuse the field (Groq, Mistral): those get it that have been seen to send it.
 */
function compatible(create: typeof import('@ai-sdk/openai-compatible').createOpenAICompatible, to: Connect): Vendor {
  let sendsReasoning = false
  const processChunk = (chunk: unknown) => {
    sendsReasoning ||= hasReasoning(chunk)
  }
  const metadataExtractor = {
    extractMetadata: () => Promise.resolve(undefined),
    createStreamExtractor: () => ({ processChunk, buildMetadata: () => undefined }),
  }
  // The package spreads data under `openaiCompatible` over the messages: under any other name it does not.
  const provider = create({ ...to, name: 'compatible', includeUsage: true, metadataExtractor })
  return {
    namespace: 'compatible',
    model: (id) => provider.chatModel(id),
    maxStops: openAiStops,
    thinkingMeta: () => (sendsReasoning ? { compatible: { field: 'reasoning_content' } } : undefined),
    forgetsThinking: true,
  }
}

type Chunk = { choices?: { delta?: { reasoning_content?: unknown } }[] } | null | undefined

const hasReasoning = (chunk: unknown): boolean =>
  typeof (chunk as Chunk)?.choices?.[0]?.delta?.reasoning_content === 'string'

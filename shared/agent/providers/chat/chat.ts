import { fileKindOf } from '../../../kernel/attachment.ts'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import { PROVIDER_TYPES, type ProviderType } from '../../../kernel/provider-types.ts'
import { isWav } from '../attachments.ts'
import { keyFailure } from '../failures/failures.ts'
import type { ModelLimits } from '../limits.ts'
import type { HttpsProxy, ModelProvider, Send } from '../port.ts'
import type { LeftOut } from '../unsupported-options.ts'
import { createOllamaBody } from './ollama.ts'
import { createOllamaFacts } from './ollama-facts.ts'
import { chatUrl, createChatBody, type ServerQuirks } from './request.ts'
import { createHttpSend } from './transport.ts'
import { type ChatServer, ChatTurn } from './turn.ts'

export type ChatSettings = {
  type: ProviderType
  /** Required for a type without a default address. */
  baseUrl: string | undefined
  apiKey: string | undefined
  limits: ModelLimits
  options: ModelOptions
  leftOut: LeftOut
  /** Name of the tenant's instance, for messages; `undefined` for the server's own provider. */
  instance: string | undefined
  /** Replaces the provider's own connections; must keep the limit for connecting itself. */
  send: Send | undefined
  proxy: HttpsProxy | undefined
}

/**
 * Opens a provider over OpenAI's chat completions: OpenAI's own, and those of the many servers that copy the format. Written by
 * hand, because this format carries most of the traffic and the AI SDK's package for it costs several times as much CPU.
 */
export function createChatProvider(settings: ChatSettings): ModelProvider {
  const { type, baseUrl, apiKey = '', limits, options, leftOut, instance, send, proxy } = settings
  const isOllama = type === 'ollama'
  const isOwnFormat = isOllama && isOllamaRoot(baseUrl)
  const url = isOwnFormat ? `${ollamaRoot(baseUrl)}/api/chat` : chatUrl(type, baseUrl)
  const endpoint: ChatServer['endpoint'] = {
    url,
    headers: { ...headersFor(apiKey), ...options.headers },
    limits: isOwnFormat ? { ...limits, eventEnd: 'line' } : limits,
    send: send ?? createHttpSend({ connectMs: limits.connectMs, proxy }),
  }
  const quirks: ServerQuirks = { origin: new URL(url).host, sendsReasoning: false, namesStops: false }
  const facts = createOllamaFacts({ chatUrl: url, headers: endpoint.headers, send: endpoint.send })
  const toBody = isOwnFormat
    ? createOllamaBody({ options, leftOut, origin: quirks.origin, windowOf: facts.lastWindowOf })
    : createChatBody({ type, options, quirks, leftOut })
  const framing = isOwnFormat ? 'lines' : 'events'
  const configFailure = keyFailure({ type, apiKey, instance }, baseUrl)
  const server: ChatServer = { type, apiKey, instance, endpoint, quirks, leftOut, toBody, framing, configFailure }
  return {
    type,
    instance,
    contextWindow: options.context_window,
    takesTools: (model) => !leftOut.has(model, 'tools'),
    takesFile: (_model, mediaType) => (isOwnFormat ? isTakenByOllama(mediaType) : isTakenInChat(mediaType)),
    ...(isOllama && { askWindow: facts.askWindow, askCapabilities: facts.askCapabilities }),
    stream: (request, signal) => new ChatTurn(server, request, signal),
  }
}

function isTakenInChat(mediaType: string): boolean {
  const kind = fileKindOf(mediaType)
  return kind !== undefined && (kind !== 'audio' || isWav(mediaType) || mediaType === 'audio/mpeg')
}

const isTakenByOllama = (mediaType: string): boolean => /^(?:image|text)$/.test(fileKindOf(mediaType) ?? '')

/**
 * Whether Ollama's own format is used: for an address with only the host, or with the path of Ollama's own API. Any
 * other path selects the chat format.
 */
const isOllamaRoot = (baseUrl: string | undefined): boolean =>
  baseUrl === undefined ||
  PROVIDER_TYPES.ollama.ownFormatPath?.test(new URL(baseUrl).pathname.replace(/\/+$/, '')) === true

const ollamaRoot = (baseUrl = PROVIDER_TYPES.ollama.baseUrl ?? ''): string => new URL(baseUrl).origin

const headersFor = (apiKey: string): Record<string, string> => ({
  'content-type': 'application/json',
  'accept-encoding': 'identity', // A compressed stream is delayed until it fills a block.
  'user-agent': 'agent-engine',
  ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }),
})

import type { ProviderType } from '../../config/model.ts'
import { type FailedCall, malformedKey } from '../failures/failures.ts'
import type { ModelLimits } from '../limits.ts'
import type { ModelProvider } from '../port.ts'
import { chatUrl, createChatBody } from './request.ts'
import { createHttpSend, type Send } from './transport.ts'
import { ChatTurn } from './turn.ts'

export type ChatType = Extract<ProviderType, 'openai' | 'openai-compatible' | 'ollama'>

export type ChatSettings = {
  type: ChatType
  /** Ollama alone has one of its own. */
  baseUrl?: string
  apiKey?: string
  limits: ModelLimits
  /** Stands in for the provider's own connections; it then has the limit for connecting to itself. */
  send?: Send
}

/** Where each provider's users keep its key. */
const KEY_VARIABLE: Partial<Record<ChatType, string>> = { openai: 'OPENAI_API_KEY' }

/**
 * Opens a provider over OpenAI's chat completions: OpenAI's own, and those of the many servers made after them. Written by
 * hand, because this format carries most of the traffic and the package for it costs several times as much CPU.
 */
export function createChatProvider({ type, baseUrl, apiKey = '', limits, send }: ChatSettings): ModelProvider {
  const isKeySane = /^[\x21-\x7e]*$/.test(apiKey)
  const line = {
    url: chatUrl(type, baseUrl),
    headers: {
      'content-type': 'application/json',
      'accept-encoding': 'identity', // A compressed stream is held back until it is worth a block.
      'user-agent': 'agent-engine',
      ...(apiKey !== '' && { authorization: `Bearer ${apiKey}` }),
    },
    limits,
    send: send ?? createHttpSend(limits),
  }
  const habits = { sendsReasoning: false }
  const toBody = createChatBody(type)
  return {
    type,
    stream(request, signal) {
      const call: FailedCall = { type, model: request.model, apiKey, keyVariable: KEY_VARIABLE[type] }
      return {
        [Symbol.asyncIterator]: () =>
          new ChatTurn({
            line,
            habits,
            toBody,
            call,
            request,
            signal,
            ...(!isKeySane && { refusal: malformedKey(call) }),
          }),
      }
    },
  }
}

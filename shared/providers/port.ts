import type { JsonObject, RunErrorCode } from '../events.ts'

/** What a provider wants back unchanged with a part of its own, such as a thinking block's signature. */
export type ProviderMeta = Record<string, JsonObject>

export type AssistantBlock =
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string; meta?: ProviderMeta }
  | { type: 'tool_use'; id: string; toolName: string; input: JsonObject; meta?: ProviderMeta }

export type ToolResultBlock = { id: string; toolName: string; output: string; isError: boolean }

/** One entry of a conversation's history. */
export type Message =
  | { role: 'user'; text: string }
  | { role: 'assistant'; blocks: AssistantBlock[] }
  | { role: 'tool'; results: ToolResultBlock[] }

/** A tool as the model sees it. */
export type ToolDefinition = { name: string; description: string; inputSchema: JsonObject }

export type ModelRequest = {
  model: string
  system?: string
  messages: readonly Message[]
  tools: readonly ToolDefinition[]
  stopSequences: readonly string[]
}

/** Token counts of one turn. `input` is the whole input, the cached parts included. */
export type Usage = { input: number; cacheRead: number; cacheWrite: number; output: number }

export type FailureCode = Extract<
  RunErrorCode,
  | 'provider_auth'
  | 'provider_rate_limited'
  | 'provider_unavailable'
  | 'provider_rejected'
  | 'context_too_long'
  | 'content_filtered'
  | 'timeout'
>

/** Why a model call failed, in the adapter's own words: no key, no stack, no internal address (D4.8). */
export type Failure = {
  code: FailureCode
  message: string
  /** One or two words for `transport_retrying`: `http_503`, `connection_reset`, `no_answer`, … */
  reason: string
  /** May the same request be sent again (D5.5)? */
  isRetryable: boolean
  /** May the fallback take the turn? True for retryable failures and for out-of-credit answers (402). */
  isFailover: boolean
  retryAfterMs?: number
}

/**
 * What a model's answer is made of, in order. A block of text or thinking is its deltas, then its end; the last part is
 * always `finish` or `failure`. The iteration never throws, except for a bug.
 */
export type ModelPart =
  | { type: 'text_delta'; text: string }
  | { type: 'text_end' }
  | { type: 'thinking_delta'; text: string }
  | { type: 'thinking_end'; meta?: ProviderMeta }
  /** `input` is the JSON text as the model wrote it; it may be malformed. */
  | { type: 'tool_call'; id: string; toolName: string; input: string; meta?: ProviderMeta }
  | { type: 'finish'; reason: 'end_turn' | 'stop_sequence' | 'tool_use' | 'max_tokens'; usage: Usage }
  | { type: 'failure'; failure: Failure }

/** A model behind a wire format. Aborting `signal` closes the connection to it and ends the iteration. */
export interface ModelProvider {
  /** The configured type (`openai`, `anthropic`, …): names the price list and the warnings. */
  readonly type: string
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart>
}

/** A model to call: where, and which. */
export type ModelRoute = { provider: ModelProvider; model: string }

/** What a turn of a provider's type and model costs in US dollars; `undefined` when the price is not known (D4.10). */
export type PriceOf = (type: string, model: string, usage: Usage) => number | undefined

/** How many tokens a provider's model reads and writes at most in one call; `undefined` when that is not known. */
export type WindowOf = (type: string, model: string) => number | undefined

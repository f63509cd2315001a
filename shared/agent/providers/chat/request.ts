import type { JsonObject } from '../../../kernel/events.ts'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import type { ProviderType } from '../../../kernel/provider-types.ts'
import { hasAttachments, withoutAttachments } from '../attachments.ts'
import { apiBase, endpointOf } from '../base-url.ts'
import { promptCacheKey } from '../cache-key.ts'
import { chosenOptions } from '../choices.ts'
import { FLEX, wantsFlex } from '../flex.ts'
import type { ModelChoices, ModelRequest, StructuredOutput } from '../port.ts'
import { isStrictSchema } from '../strict-schema.ts'
import type { LeftOut, OptionalPart } from '../unsupported-options.ts'
import { toConversation } from './conversation.ts'
import { withTools } from './tools-json.ts'

/** The address of the completions API. Throws when neither the configuration nor the type has a base URL. */
export const chatUrl = (type: ProviderType, baseUrl: string | undefined): string =>
  endpointOf(apiBase(type, baseUrl), '/chat/completions')

/** Facts about a server, most of which its answers have shown. Kept for as long as the provider is open. */
export type ServerQuirks = {
  /** The server's origin. Data that a server has attached to a block is sent back only to that server. */
  readonly origin: string
  /** The server sends thinking in the field `reasoning_content`, and may require it back there. */
  sendsReasoning: boolean
  /** The server names the stop sequence that ended an answer. */
  namesStops: boolean
}

type Target = { type: ProviderType; options: ModelOptions; quirks: ServerQuirks; leftOut: LeftOut }

/** Builds the body of a request as JSON in UTF-8, and names its fields that a server may refuse. */
export type ChatBody = (request: ModelRequest) => { json: Uint8Array; optionalParts: readonly OptionalPart[] }

export function createChatBody(target: Target): ChatBody {
  return (given) => {
    const request = withTakenParts(given, target)
    const { model, system, tools, output } = request
    const optional = optionalFields(request, { ...target, options: chosenOptions(target.options, request) })
    const { origin } = target.quirks
    const conversation = toConversation(request, origin)
    const whole = system ? [{ role: 'system', content: system }, ...conversation] : conversation
    const json = withTools(tools, {
      model,
      ...optional,
      messages: takesCachePoints(origin, model) ? withCachePoints(whole) : whole,
      stream: true,
      ...(output && { response_format: toFormat(output) }),
    })
    const names = Object.keys(optional) as OptionalPart[]
    if (hasAttachments(request.messages)) names.push('attachments')
    if (tools.length > 0) names.push('tools')
    return { json, optionalParts: names }
  }
}

function withTakenParts(request: ModelRequest, { leftOut }: Target): ModelRequest {
  const { model, messages } = request
  const taken = leftOut.has(model, 'attachments') ? withoutAttachments(messages) : messages
  return { ...request, messages: taken, tools: leftOut.takenTools(request) }
}

const toFormat = ({ name, schema }: StructuredOutput) => ({
  type: 'json_schema',
  json_schema: { name, schema, strict: isStrictSchema(schema) },
})

/** The fields of the request that some servers refuse: the configured options and the engine's own. */
function optionalFields(request: ModelRequest, target: Target): Partial<Record<OptionalPart, unknown>> {
  const { model, tools } = request
  const { type, options, leftOut } = target
  const { max_output_tokens: maxTokens, temperature, parallel_tool_calls: parallel } = options
  const { toolChoice } = request.choices ?? {}
  const stop = stopsOf(request, target.quirks)
  const effort = effortOf(request, target)
  if (temperature !== undefined && isOpenAiReasoning(type, model)) leftOut.add(model, 'temperature')
  const fields: Partial<Record<OptionalPart, unknown>> = {
    ...(maxTokens !== undefined && { [limitField(model, target)]: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(parallel !== undefined && tools.length > 0 && { parallel_tool_calls: parallel }),
    ...(toolChoice && tools.length > 0 && { tool_choice: toToolChoice(toolChoice) }),
    ...(stop.length > 0 && { stop }),
    ...(type === 'ollama' && options.context_window !== undefined && { options: { num_ctx: options.context_window } }),
    ...(type === 'openai' && { prompt_cache_key: promptCacheKey(request) }),
    ...(type === 'openai' && wantsFlex(request, options) && { service_tier: FLEX }),
    stream_options: { include_usage: true },
  }
  const names = Object.keys(fields) as OptionalPart[]
  for (const name of names) if (leftOut.has(model, name)) delete fields[name]
  return fields
}

const toToolChoice = (choice: NonNullable<ModelChoices['toolChoice']>) =>
  typeof choice === 'string' ? choice : { type: 'function', function: choice }

/** The two names of the output limit: the newer one is OpenAI's, the other one is accepted by its copies. */
function limitField(model: string, { type, leftOut }: Target): OptionalPart {
  if (type === 'openai') return leftOut.has(model, 'max_completion_tokens') ? 'max_tokens' : 'max_completion_tokens'
  return leftOut.has(model, 'max_tokens') ? 'max_completion_tokens' : 'max_tokens'
}

const effortOf = ({ model, tools }: ModelRequest, { type, options }: Target) =>
  type === 'openai' && tools.length > 0 && refusesReasoningWithTools(model) ? 'none' : options.reasoning_effort

/** OpenAI's reasoning models reject a temperature. */
const isOpenAiReasoning = (type: ProviderType, model: string) =>
  type === 'openai' && /(?:^|\/)(?:o\d|gpt-[5-9])/.test(model)

/** The reasoning models of OpenAI and of xAI reject a request with stop sequences. */
const rejectsStops = (model: string) => /(?:^|\/)(?:o\d|gpt-[5-9]|grok-[3-9])/.test(model)

const MAX_STOPS = 4

/**
 * The engine enforces all stop sequences (D4.11), so they are sent only to a server that reports which one it found, which the
 * format itself does not provide. Some servers reject a blank one.
 */
const stopsOf = ({ model, stopSequences }: ModelRequest, { namesStops }: ServerQuirks): string[] =>
  namesStops && !rejectsStops(model) ? stopSequences.filter((stop) => stop.trim() !== '').slice(0, MAX_STOPS) : []

/** From version 5.6 on, OpenAI's models accept tools in this format only without reasoning. */
const refusesReasoningWithTools = (model: string) => /(?:^|\/)gpt-5\.(?:[6-9]|\d\d)/.test(model)

const CACHED = { cache_control: { type: 'ephemeral' } }

/** OpenRouter forwards Anthropic's cache points. Other gateways may refuse the field. */
const takesCachePoints = (origin: string, model: string): boolean =>
  /(?:^|\.)openrouter\.ai$/.test(origin) && /(?:^|\/)claude-/.test(model)

/**
 * Marks the prefixes that Anthropic caches: up to the system prompt, up to the end of this request, from which the next one reads,
 * and up to the end of the request before.
 */
function withCachePoints(messages: readonly JsonObject[]): JsonObject[] {
  const lastAnswer = messages.findLastIndex(({ role }) => role === 'assistant')
  const points = new Set([messages.length - 1, lastAnswer - 1])
  return messages.map((message, index) => {
    const { role } = message
    return role === 'system' || (points.has(index) && role !== 'assistant') ? marked(message) : message
  })
}

function marked(message: JsonObject): JsonObject {
  const { content } = message
  if (typeof content === 'string')
    return content === '' ? message : { ...message, content: [{ type: 'text', text: content, ...CACHED }] }
  if (!Array.isArray(content) || content.length === 0) return message
  return {
    ...message,
    content: content.map((part, index) => (index === content.length - 1 ? { ...part, ...CACHED } : part)),
  }
}

import type { JsonObject } from '../../events.ts'
import type { ModelOptions } from '../../model-options.ts'
import { PROVIDER_TYPES, type ProviderType } from '../../provider-types.ts'
import type { ModelRequest, StructuredOutput, ToolDefinition } from '../port.ts'
import { isStrictSchema } from '../strict-schema.ts'
import { toolParameters } from '../tool-schema.ts'
import { toConversation } from './conversation.ts'

/** The address of the completions API. Throws when neither the configuration nor the type has a base URL. */
export function chatUrl(type: ProviderType, baseUrl: string | undefined): string {
  const { baseUrl: ownBaseUrl = '', bareHostPath = '' } = PROVIDER_TYPES[type]
  const url = new URL(baseUrl ?? ownBaseUrl)
  const path = url.pathname === '/' ? bareHostPath : url.pathname.replace(/\/+$/, '')
  url.pathname = `${path}/chat/completions`
  return url.href
}

/** Facts about a server, most of which its answers have shown. Kept for as long as the provider is open. */
export type ServerQuirks = {
  /** Its host. Data that it attached to a block is sent back to no other server. */
  readonly origin: string
  /** It sends thinking in the field `reasoning_content`, and may require it back there. */
  sendsReasoning: boolean
  /** It names the stop sequence that ended an answer. */
  namesStops: boolean
}

type Target = { type: ProviderType; options: ModelOptions; quirks: ServerQuirks }

/** Builds the body of a request as JSON text. */
export type ChatBody = (request: ModelRequest) => string

export function createChatBody(target: Target): ChatBody {
  // Cached, because a run sends the same tools and schema in every turn, and they are the largest part of a short request.
  const toolsJson = cached((tools: readonly ToolDefinition[]) => JSON.stringify(tools.map(toTool)))
  const formatJson = cached(({ name, schema }: StructuredOutput) =>
    JSON.stringify({ type: 'json_schema', json_schema: { name, schema, strict: isStrictSchema(schema) } }),
  )
  return (request) => {
    const { model, system, tools, output } = request
    const stop = stopsOf(request, target.quirks)
    const conversation = toConversation(request, target.quirks.origin)
    const body = JSON.stringify({
      model,
      ...(stop.length > 0 && { stop }),
      ...optionFields(request, target),
      messages: system ? [{ role: 'system', content: system }, ...conversation] : conversation,
      stream: true,
      stream_options: { include_usage: true },
    })
    const format = output ? `,"response_format":${formatJson(output)}` : ''
    const offer = tools.length > 0 ? `,"tools":${toolsJson(tools)}` : ''
    return `${body.slice(0, -1)}${format}${offer}}`
  }
}

function cached<T extends object>(toJson: (value: T) => string): (value: T) => string {
  const known = new WeakMap<T, string>()
  return (value) => {
    const json = known.get(value) ?? toJson(value)
    known.set(value, json)
    return json
  }
}

/** The configured options as fields of the request. Options that the model is known to reject are left out. */
function optionFields({ model, tools }: ModelRequest, { type, options }: Target): JsonObject {
  const { max_output_tokens: maxTokens, temperature, reasoning_effort: effort, parallel_tool_calls: parallel } = options
  const isOpenAi = type === 'openai'
  const reasoning = isOpenAi && tools.length > 0 && refusesReasoningWithTools(model) ? 'none' : effort
  return {
    ...(maxTokens !== undefined && { [isOpenAi ? 'max_completion_tokens' : 'max_tokens']: maxTokens }),
    ...(temperature !== undefined && !(isOpenAi && isReasoningModel(model)) && { temperature }),
    ...(reasoning !== undefined && { reasoning_effort: reasoning }),
    ...(parallel !== undefined && tools.length > 0 && { parallel_tool_calls: parallel }),
  }
}

/** OpenAI's reasoning models reject a temperature. */
const isReasoningModel = (model: string) => /(?:^|\/)(?:o\d|gpt-[5-9])/.test(model)

/** The reasoning models of OpenAI and of xAI reject a request with stop sequences. */
const rejectsStops = (model: string) => /(?:^|\/)(?:o\d|gpt-[5-9]|grok-[3-9])/.test(model)

const MAX_STOPS = 4

/**
 * The engine enforces all stop sequences (D4.11), so they are sent only to a server that says which of them it found; the format
 * itself cannot tell. Some servers reject a blank one.
 */
const stopsOf = ({ model, stopSequences }: ModelRequest, { namesStops }: ServerQuirks): string[] =>
  namesStops && !rejectsStops(model) ? stopSequences.filter((stop) => stop.trim() !== '').slice(0, MAX_STOPS) : []

/** From version 5.6 on, OpenAI's models accept tools in this format only without reasoning. */
const refusesReasoningWithTools = (model: string) => /(?:^|\/)gpt-5\.(?:[6-9]|\d\d)/.test(model)

const toTool = ({ name, description, inputSchema }: ToolDefinition) => ({
  type: 'function',
  function: { name, description, parameters: toolParameters(inputSchema) },
})

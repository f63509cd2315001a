import type { LanguageModelV4CallOptions, LanguageModelV4Message, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { AssistantBlock, Message, ModelRequest, ProviderMeta, ToolDefinition, ToolResultBlock } from '../port.ts'
import type { Vendor } from './vendors.ts'

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type ToolContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content']

/** A request in the package's words. */
export function toCallOptions(request: ModelRequest, vendor: Vendor): LanguageModelV4CallOptions {
  const { system, messages, tools } = request
  const stopSequences = stopsOf(request, vendor)
  const conversation = messages.map((message) => toMessage(message, vendor))
  const cachePoint = vendor.cachePoint && { providerOptions: vendor.cachePoint }
  return {
    prompt: [
      ...(system ? [{ role: 'system' as const, content: system, ...cachePoint }] : []),
      ...withCachePoints(
        conversation.filter(({ content }) => content.length > 0),
        cachePoint,
      ),
    ],
    includeRawChunks: false,
    ...(tools.length > 0 && { tools: toTools(tools, system ? undefined : cachePoint) }),
    ...(stopSequences.length > 0 && { stopSequences }),
    ...(vendor.providerOptions && { providerOptions: vendor.providerOptions }),
  }
}

/** As many as the provider takes; the engine enforces all of them anyway (D4.11). Some refuse one that is only white space. */
const stopsOf = ({ stopSequences }: ModelRequest, vendor: Vendor): string[] =>
  stopSequences.filter((stop) => stop.trim() !== '').slice(0, vendor.maxStops)

type CachePoint = { providerOptions: SharedV4ProviderOptions }

/**
 * Two points: the end of this request, which the next one reads up to, and the end of the one before it. Of Anthropic's four
 * with the one behind the system prompt, which stands behind the tools, three are used. A prefix that is too short for its
 * cache is read without it.
 */
function withCachePoints(
  messages: LanguageModelV4Message[],
  cachePoint: CachePoint | undefined,
): LanguageModelV4Message[] {
  if (!cachePoint) return messages
  const ends = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index - 1] : []))
  const points = new Set([ends.at(-1), messages.length - 1])
  return messages.map((message, index) => (points.has(index) ? { ...message, ...cachePoint } : message))
}

/** The point is behind the last one, where no system prompt follows. */
const toTools = (tools: readonly ToolDefinition[], cachePoint: CachePoint | undefined) =>
  tools.map((tool, index) => ({ ...toTool(tool), ...(index === tools.length - 1 && cachePoint) }))

const toTool = ({ name, description, inputSchema }: ToolDefinition) => ({
  type: 'function' as const,
  name,
  description,
  inputSchema,
})

function toMessage(message: Message, vendor: Vendor): LanguageModelV4Message {
  if (message.role === 'user') return { role: 'user', content: [{ type: 'text', text: message.text }] }
  if (message.role === 'tool')
    return { role: 'tool', content: message.results.map((result) => toResult(result, vendor)) }
  return { role: 'assistant', content: message.blocks.flatMap((block) => toParts(block, vendor)) }
}

/** Thinking is only worth something to the provider that signed it: without its own data it stays here. */
function toParts(block: AssistantBlock, vendor: Vendor): AssistantContent {
  if (block.type === 'text') return block.text === '' ? [] : [{ type: 'text', text: block.text }]
  const providerOptions = ownMeta(block.meta, vendor.namespace)
  if (block.type === 'thinking') {
    return providerOptions ? [{ type: 'reasoning', text: block.text, providerOptions }] : []
  }
  const { toolName, input } = block
  const toolCallId = toolId(block.id, vendor)
  return [{ type: 'tool-call', toolCallId, toolName, input, ...(providerOptions && { providerOptions }) }]
}

function toResult({ id, toolName, output, isError }: ToolResultBlock, vendor: Vendor): ToolContent[number] {
  const type = isError ? 'error-text' : 'text'
  return { type: 'tool-result', toolCallId: toolId(id, vendor), toolName, output: { type, value: output } }
}

const toolId = (id: string, vendor: Vendor) => vendor.toolId?.(id) ?? id

/** The part of `meta` that belongs to this wire format. */
function ownMeta(meta: ProviderMeta | undefined, namespace: string): SharedV4ProviderOptions | undefined {
  const own = meta?.[namespace]
  return own && ({ [namespace]: own } as SharedV4ProviderOptions)
}

import type { LanguageModelV4CallOptions, LanguageModelV4Message, SharedV4ProviderOptions } from '@ai-sdk/provider'
import { type Attachment, fileKindOf } from '../../../kernel/attachment.ts'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import { textOfFile } from '../attachments.ts'
import type {
  AssistantBlock,
  Message,
  ModelChoices,
  ModelRequest,
  ProviderMeta,
  ToolDefinition,
  ToolResultBlock,
} from '../port.ts'
import { withToolIds } from '../tool-ids.ts'
import { toolParameters } from '../tool-schema.ts'
import type { Vendor } from './vendors.ts'

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']
type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content']
type ToolContent = Extract<LanguageModelV4Message, { role: 'tool' }>['content']

/** Converts a request into the package's call options. */
export function toCallOptions(
  request: ModelRequest,
  vendor: Vendor,
  options: ModelOptions,
): LanguageModelV4CallOptions {
  const { system, messages, tools, output, choices } = request
  const stopSequences = stopsOf(request, vendor)
  const conversation = withToolIds(messages, vendor.toolIds).map((message) => toMessage(message, vendor))
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
    ...(tools.length > 0 && choices?.toolChoice && { toolChoice: toToolChoice(choices.toolChoice) }),
    ...(stopSequences.length > 0 && { stopSequences }),
    ...(output && { responseFormat: { type: 'json' as const, ...output } }),
    ...optionFields(options),
    ...providerOptionsFor(vendor, {
      ...vendor.settingsFor?.(request, options),
      ...(tools.length > 0 && parallelOf(vendor, options)),
      ...(output && vendor.structuredOutput?.(output.schema)),
    }),
  }
}

const toToolChoice = (choice: NonNullable<ModelChoices['toolChoice']>) =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool' as const, toolName: choice.name }

/** The configured options under the package's names; the package leaves out options that the model does not accept. */
function optionFields(options: ModelOptions): Partial<LanguageModelV4CallOptions> {
  const { max_output_tokens: maxOutputTokens, temperature, reasoning_effort: reasoning, headers } = options
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(reasoning !== undefined && { reasoning }),
    ...(headers && { headers }),
  }
}

type OwnOptions = SharedV4ProviderOptions[string]

const parallelOf = ({ parallelToolCalls }: Vendor, { parallel_tool_calls: isAllowed }: ModelOptions) =>
  isAllowed === undefined ? undefined : parallelToolCalls?.(isAllowed)

/** `own` contains the options that this request adds in the vendor's namespace. */
function providerOptionsFor(
  { namespace, providerOptions }: Vendor,
  own: OwnOptions,
): Pick<LanguageModelV4CallOptions, 'providerOptions'> {
  if (!providerOptions && Object.keys(own).length === 0) return {}
  return { providerOptions: { ...providerOptions, [namespace]: { ...providerOptions?.[namespace], ...own } } }
}

/** Some providers reject a blank stop sequence. */
const stopsOf = ({ stopSequences }: ModelRequest, { reportsStops }: Vendor): string[] =>
  reportsStops ? stopSequences.filter((stop) => stop.trim() !== '') : []

type CachePoint = { providerOptions: SharedV4ProviderOptions }

/**
 * Adds two cache points: at the end of this request, up to which the next request reads from the cache, and at the end of the
 * request before. With the one after the system prompt, which covers the tools too, three of Anthropic's four are used.
 * Anthropic ignores a cache point whose prefix is too short.
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

/** Adds the cache point to the last tool. Used when there is no system prompt, whose cache point would cover the tools. */
const toTools = (tools: readonly ToolDefinition[], cachePoint: CachePoint | undefined) =>
  tools.map((tool, index) => ({ ...toTool(tool), ...(index === tools.length - 1 && cachePoint) }))

const toTool = ({ name, description, inputSchema }: ToolDefinition) => ({
  type: 'function' as const,
  name,
  description,
  inputSchema: toolParameters(inputSchema),
})

function toMessage(message: Message, vendor: Vendor): LanguageModelV4Message {
  if (message.role === 'user') return { role: 'user', content: toUserParts(message, vendor) }
  if (message.role === 'tool') return { role: 'tool', content: message.results.map(toResult) }
  return { role: 'assistant', content: message.blocks.flatMap((block) => toParts(block, vendor)) }
}

const toUserParts = (
  { text, attachments = [] }: Extract<Message, { role: 'user' }>,
  { takesTextFiles }: Vendor,
): UserContent => [...textPart(text), ...attachments.map((file) => toUserPart(file, takesTextFiles === true))]

function toUserPart(file: Attachment, takesTextFiles: boolean): UserContent[number] {
  if (fileKindOf(file.mediaType) !== 'text') return toFilePart(file)
  return takesTextFiles ? toFilePart({ ...file, mediaType: 'text/plain' }) : { type: 'text', text: textOfFile(file) }
}

const toFilePart = ({ name: filename, mediaType, base64: data }: Attachment) => ({
  type: 'file' as const,
  mediaType,
  filename,
  data: { type: 'data' as const, data },
})

/** Anthropic refuses a text that is only white space. */
const textPart = (text: string) => (text.trim() === '' ? [] : [{ type: 'text' as const, text }])

/** Thinking is sent only with this provider's own signature: others reject or ignore it. */
function toParts(block: AssistantBlock, vendor: Vendor): AssistantContent {
  if (block.type === 'text') return textPart(block.text)
  const providerOptions = ownMeta(block.meta, vendor.namespace)
  if (block.type === 'thinking') {
    return providerOptions ? [{ type: 'reasoning', text: block.text, providerOptions }] : []
  }
  const { id: toolCallId, toolName, input } = block
  return [{ type: 'tool-call', toolCallId, toolName, input, ...(providerOptions && { providerOptions }) }]
}

function toResult({ id: toolCallId, toolName, output, isError, attachments }: ToolResultBlock): ToolContent[number] {
  if (attachments) {
    const value = [{ type: 'text' as const, text: output }, ...attachments.map(toFilePart)]
    return { type: 'tool-result', toolCallId, toolName, output: { type: 'content', value } }
  }
  const type = isError ? 'error-text' : 'text'
  return { type: 'tool-result', toolCallId, toolName, output: { type, value: output } }
}

/** The data in `meta` that belongs to this dialect. */
function ownMeta(meta: ProviderMeta | undefined, namespace: string): SharedV4ProviderOptions | undefined {
  const own = meta?.[namespace]
  return own && ({ [namespace]: own } as SharedV4ProviderOptions)
}

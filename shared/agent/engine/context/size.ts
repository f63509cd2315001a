import type { Message, ToolDefinition, ToolResultBlock } from '../../providers/port.ts'
import { perToolList } from '../../providers/tool-list.ts'

/** The tokens that a provider counted in a request, and the characters of the request's history and of its fixed parts. */
export type Measure = { tokens: number; chars: number; fixedChars: number; model: string; compactions: number }

/** No model's window is smaller, so a lower count does not show a full window. */
const MIN_WINDOW_TOKENS = 1_000
/** Smaller growth is ignored, because counts differ a little. */
const MIN_GROWTH_TOKENS = 200
/** A count that grows by less than this part of the expected growth has not grown. */
const STANDS_STILL = 0.1

/**
 * Whether the server has cut the request without an error: the request is longer than the one before, for the same model, but the count of
 * its tokens has fallen or not grown.
 */
export function isCutSilently(before: Measure | undefined, now: Measure): boolean {
  if (before?.model !== now.model || before.compactions !== now.compactions) return false
  if (now.tokens < MIN_WINDOW_TOKENS) return false
  const whole = before.chars + before.fixedChars
  const grown = now.chars + now.fixedChars - whole
  const expected = grown * Math.max(MIN_TOKENS_PER_CHAR, before.tokens / Math.max(1, whole))
  return expected >= MIN_GROWTH_TOKENS && now.tokens - before.tokens < expected * STANDS_STILL
}

/** The parts that every request of a run carries besides the history. */
export type FixedParts = {
  systemPrompt: string | undefined
  background: string | undefined
  tools: readonly ToolDefinition[]
}

export const fixedChars = ({ systemPrompt = '', background = '', tools }: FixedParts): number =>
  systemPrompt.length + background.length + charsOfTools(tools)

const charsOfTools = perToolList((tools) => {
  const definitions = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  return JSON.stringify(definitions).length
})

/** Counts the characters of a history that the model reads. */
export const charsOf = (messages: readonly Message[]): number =>
  messages.reduce((chars, message) => chars + charsOfOne(message), 0)

function charsOfOne(message: Message): number {
  if (message.role === 'user') return message.text.length + charsOfFiles(message)
  if (message.role === 'tool') return message.results.reduce((chars, result) => chars + charsOfResult(result), 0)
  return message.blocks.reduce(
    (chars, block) => chars + (block.type === 'tool_use' ? JSON.stringify(block.input).length : block.text.length),
    0,
  )
}

/** The approximate cost of an image or a page: 1,500 tokens. */
const ATTACHMENT_CHARS = 6_000

const charsOfResult = ({ output, attachments = [] }: ToolResultBlock) =>
  output.length + attachments.length * ATTACHMENT_CHARS

const charsOfFiles = (message: UserMessage): number => shownFiles(message).length * ATTACHMENT_CHARS

type UserMessage = Extract<Message, { role: 'user' }>

const shownFiles = ({ files = [], attachments }: UserMessage) =>
  attachments ?? files.filter(({ is_named: isNamed }) => !isNamed)

/** Whether the model gets more than text from a history. */
export const hasShownFiles = (messages: readonly Message[]): boolean =>
  messages.some((message) => {
    if (message.role === 'tool') return message.results.some(({ attachments }) => attachments)
    return message.role === 'user' && shownFiles(message).length > 0
  })

/** The ratio of English prose, used until a provider has reported a count. */
const TOKENS_PER_CHAR = 1 / 4
/** Bounds of the ratio in real text. A count outside them cannot be real. */
const MAX_TOKENS_PER_CHAR = 2
const MIN_TOKENS_PER_CHAR = 1 / 10

/** Tokens per character by the provider's last count, or by estimate when there is none. `fixed` is in characters. */
export function tokensPerChar(measured: Pick<Measure, 'tokens' | 'chars'> | undefined, fixed: number): number {
  if (!measured) return TOKENS_PER_CHAR
  const ratio = measured.tokens / Math.max(1, measured.chars + fixed)
  return Math.min(MAX_TOKENS_PER_CHAR, Math.max(MIN_TOKENS_PER_CHAR, ratio))
}

export const tokensOf = (chars: number, perChar = TOKENS_PER_CHAR): number => Math.ceil(chars * perChar)

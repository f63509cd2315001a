import type { Message, ToolDefinition } from '../../providers/port.ts'

/** What a provider counted in a request, and how many characters its history had. */
export type Measure = { tokens: number; chars: number }

/** What goes with every request of a run, besides the history. */
export type Fixed = { system?: string; background?: string; tools: readonly ToolDefinition[] }

export function fixedChars({ system = '', background = '', tools }: Fixed): number {
  const offers = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  return system.length + background.length + JSON.stringify(offers).length
}

/** The characters of a history, as the model reads them. */
export const charsOf = (messages: readonly Message[]): number =>
  messages.reduce((chars, message) => chars + charsOfOne(message), 0)

function charsOfOne(message: Message): number {
  if (message.role === 'user') return message.text.length
  if (message.role === 'tool') return message.results.reduce((chars, { output }) => chars + output.length, 0)
  return message.blocks.reduce(
    (chars, block) => chars + (block.type === 'tool_use' ? JSON.stringify(block.input).length : block.text.length),
    0,
  )
}

/** As in English prose, where no provider has counted yet. */
const TOKENS_PER_CHAR = 1 / 4
/** No text is denser or thinner: a provider that counts like this does not count. */
const MOST = 2
const LEAST = 1 / 10

/** What a character costs, by the provider's last count where there is one. */
export function tokensPerChar(measured: Measure | undefined, fixed: number): number {
  if (!measured) return TOKENS_PER_CHAR
  return Math.min(MOST, Math.max(LEAST, measured.tokens / Math.max(1, measured.chars + fixed)))
}

export const tokensOf = (chars: number, perChar = TOKENS_PER_CHAR): number => Math.ceil(chars * perChar)

import { fileLine } from '../../kernel/attachment.ts'
import { dataLine } from '../../kernel/prompt-data.ts'
import { truncate } from '../../kernel/text.ts'
import type { AssistantBlock, Message } from '../providers/port.ts'

export type TranscriptOptions = {
  /** Every message, tool input and tool output is cut to this many characters. */
  maxCharsEach: number
  /** Whether the inputs of tool calls and their outputs are part of the transcript. */
  hasToolDetails: boolean
}

/** Renders a conversation for a model, a line of JSON for each text, call and result. The assistant's thinking is left out. */
export const renderMessages = (messages: readonly Message[], options: TranscriptOptions): string =>
  messages.flatMap((message) => entriesOf(message, options).map(dataLine)).join('\n')

function entriesOf(message: Message, options: TranscriptOptions): object[] {
  const { maxCharsEach, hasToolDetails } = options
  if (message.role === 'user') return [{ user: truncate(textWithFiles(message), maxCharsEach) }]
  if (message.role === 'assistant') return message.blocks.flatMap((block) => entryOf(block, options))
  if (!hasToolDetails) return []
  return message.results.map(({ toolName, output }) => ({ result: toolName, output: truncate(output, maxCharsEach) }))
}

const textWithFiles = ({ text, files = [] }: Extract<Message, { role: 'user' }>): string =>
  [text, ...files.map((file) => fileLine(file))].join('\n')

function entryOf(block: AssistantBlock, { maxCharsEach, hasToolDetails }: TranscriptOptions): object[] {
  if (block.type === 'thinking') return []
  if (block.type === 'text') return [{ assistant: truncate(block.text, maxCharsEach) }]
  if (!hasToolDetails) return [{ call: block.toolName }]
  const input = JSON.stringify(block.input)
  const shown = truncate(input, maxCharsEach)
  return [{ call: block.toolName, input: shown === input ? block.input : shown }]
}

/** A finished run as it stands on a customer's ledger. */
export type RecordedRun = { timestamp: string; input: string; output: string }

/** Renders an entry of a customer's ledger for a model, as one line. */
export const renderRun = ({ timestamp, input, output }: RecordedRun): string =>
  dataLine({ time: timestamp, customer: input, answer: output })

/** Renders a memory entry (D5.3) for a model, as one line. */
export const renderMemory = (memory: string): string => dataLine({ memory })

import { truncate } from '../../kernel/text.ts'
import type { AssistantBlock, Message } from '../providers/port.ts'

export type TranscriptOptions = {
  /** Every message, tool input and tool output is cut to this many characters. */
  maxCharsEach: number
  /** Whether the inputs of tool calls and their outputs are part of the transcript. */
  hasToolDetails: boolean
}

/** Renders a conversation as text for a model. The assistant's thinking is left out. */
export const renderMessages = (messages: readonly Message[], options: TranscriptOptions): string =>
  messages.flatMap((message) => renderMessage(message, options)).join('\n')

function renderMessage(message: Message, options: TranscriptOptions): string[] {
  const { maxCharsEach, hasToolDetails } = options
  if (message.role === 'user') return [`User: ${truncate(message.text, maxCharsEach)}`]
  if (message.role === 'assistant') return message.blocks.flatMap((block) => renderBlock(block, options))
  if (!hasToolDetails) return []
  return message.results.map(({ toolName, output }) => `${toolName} gave: ${truncate(output, maxCharsEach)}`)
}

function renderBlock(block: AssistantBlock, { maxCharsEach, hasToolDetails }: TranscriptOptions): string[] {
  if (block.type === 'thinking') return []
  if (block.type === 'text') return [`Assistant: ${truncate(block.text, maxCharsEach)}`]
  if (!hasToolDetails) return [`Assistant calls ${block.toolName}`]
  return [`Assistant calls ${block.toolName}: ${truncate(JSON.stringify(block.input), maxCharsEach)}`]
}

/** A finished run as it stands on a customer's ledger. */
export type RecordedRun = { timestamp: string; input: string; output: string }

/** Renders ledger entries as text for a model, in the order given. */
export const renderRuns = (runs: readonly RecordedRun[]): string =>
  runs
    .map(({ timestamp, input, output }) => `[${timestamp}] customer: ${input}\n[${timestamp}] answer: ${output}`)
    .join('\n')

/** Renders memory entries (D5.3) as text for a model, marked as memories. */
export const renderMemories = (memories: readonly string[]): string =>
  memories.map((memory) => `- [memory] ${memory}`).join('\n')

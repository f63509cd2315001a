import type { Message } from '../providers/port.ts'

/** A history as text for a reader: what was said, and which tools were used; not what they returned. */
export function transcriptOf(messages: readonly Message[]): string {
  return messages.flatMap(linesOf).join('\n')
}

function linesOf(message: Message): string[] {
  if (message.role === 'tool') return []
  if (message.role === 'user') return [`user: ${message.text}`]
  return message.blocks.flatMap((block) => {
    if (block.type === 'thinking') return []
    return block.type === 'text' ? [`assistant: ${block.text}`] : [`assistant used ${block.toolName}`]
  })
}

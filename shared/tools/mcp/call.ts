import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import { clip } from '../clip.ts'
import { fail, succeed, type ToolOutcome } from '../port.ts'

const MAX_CHARS = 1024 * 1024

/** A server's answer as text for the model; what is no text is named, not shown. */
export function toOutcome({ content, structuredContent, isError }: CallToolResult): ToolOutcome {
  const blocks = content.map(blockText).filter((text) => text !== '')
  const text =
    blocks.join('\n') || (structuredContent === undefined ? '(no output)' : JSON.stringify(structuredContent))
  const shown =
    text.length > MAX_CHARS ? `${clip(text, MAX_CHARS)}\n[The answer was cut at ${MAX_CHARS} characters.]` : text
  return isError === true ? fail(shown) : succeed(shown)
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type} of type ${block.mimeType}, not shown]`
    case 'resource_link':
      return `[resource ${block.name}: ${block.uri}]`
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[resource ${block.resource.uri}, not text]`
    default:
      return ''
  }
}

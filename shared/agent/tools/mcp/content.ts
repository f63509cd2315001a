import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import { type Attachment, attachmentLine, attachmentType, MAX_ATTACHMENT_BYTES } from '../../../kernel/attachment.ts'

/** Files of one answer that are given to the model. */
const MAX_ATTACHMENTS = 20

/** A server's answer as the model gets it: its text, in which other content is named, and its images and PDFs. */
export function readContent(content: CallToolResult['content']): { text: string; attachments: Attachment[] } {
  const attachments: Attachment[] = []
  const texts = content.map((block, index) => {
    const attachment = attachments.length < MAX_ATTACHMENTS ? attachmentOf(block, index + 1) : undefined
    if (!attachment) return textOf(block)
    attachments.push(attachment)
    return attachmentLine(attachment)
  })
  return { text: texts.filter((text) => text !== '').join('\n'), attachments }
}

/** The block as a file that models take. The bytes decide: providers refuse a whole request for a wrong type. */
function attachmentOf(block: ContentBlock, number: number): Attachment | undefined {
  const base64 = block.type === 'image' ? block.data : block.type === 'resource' ? blobOf(block.resource) : ''
  if (base64 === '' || base64.length > (MAX_ATTACHMENT_BYTES * 4) / 3) return undefined
  const mediaType = attachmentType(Buffer.from(base64.slice(0, 32), 'base64'))
  return mediaType === undefined ? undefined : { name: `file ${number}`, mediaType, base64 }
}

const blobOf = (resource: object): string =>
  'blob' in resource && typeof resource.blob === 'string' ? resource.blob : ''

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type} of type ${block.mimeType}, not shown]`
    case 'resource_link':
      return `[resource ${[block.name, block.title, block.mimeType, block.description].filter(Boolean).join(', ')}: ${block.uri}]`
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[resource ${block.resource.uri}, not text]`
    default:
      return ''
  }
}

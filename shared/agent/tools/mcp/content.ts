import { unescape } from 'node:querystring'
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client'
import { type Attachment, attachmentLine, attachmentType, MAX_ATTACHMENT_BYTES } from '../../../kernel/attachment.ts'
import { sha256Of } from '../../../platform/objects/content.ts'
import type { NewFile } from '../../files/files.ts'
import { nameOf } from '../workspace/deliver.ts'

/** The most files of one answer that the model gets, and the most that are kept. */
export const MAX_FILES = 20

/**
 * Converts a server's answer for the model: its text, which names other content, and its images and PDFs. `unread`
 * gives the reason why a link was not read, by its address.
 */
export function readContent(
  content: CallToolResult['content'],
  unread: ReadonlyMap<string, string> = new Map(),
): { text: string; attachments: Attachment[] } {
  const attachments: Attachment[] = []
  const texts = content.map((block, index) => {
    const attachment = attachments.length < MAX_FILES ? attachmentOf(block, index + 1) : undefined
    if (!attachment) return textOf(block, unread)
    attachments.push(attachment)
    return attachmentLine(attachment)
  })
  return { text: texts.filter((text) => text !== '').join('\n'), attachments }
}

/** The block as a file that models accept. The bytes decide about its type: providers refuse a whole request for a wrong type. */
function attachmentOf(block: ContentBlock, number: number): Attachment | undefined {
  const base64 = block.type === 'image' ? block.data : block.type === 'resource' ? blobOf(block.resource) : ''
  if (base64 === '' || base64.length > (MAX_ATTACHMENT_BYTES * 4) / 3) return undefined
  const mediaType = attachmentType(Buffer.from(base64.slice(0, 32), 'base64'))
  return mediaType === undefined ? undefined : { name: `file ${number}`, mediaType, base64 }
}

/** The bytes that an answer embeds as resources: files for the user, whether the model can read them or not. */
export function embeddedFiles(content: CallToolResult['content']): NewFile[] {
  const files = content.flatMap((block) => {
    const base64 = block.type === 'resource' ? blobOf(block.resource) : ''
    return block.type === 'resource' && base64 !== '' ? [{ uri: block.resource.uri, base64 }] : []
  })
  return files.slice(0, MAX_FILES).map(({ uri, base64 }, index) => {
    return fileOf(fileNameOf(uri) ?? `file ${index + 1}`, Buffer.from(base64, 'base64'))
  })
}

export const fileOf = (name: string, content: Buffer): NewFile => ({
  ...{ name, content },
  bytes: content.length,
  sha256: sha256Of(content),
})

/** The last part of an address, if it is a name. */
export function fileNameOf(uri: string): string | undefined {
  const name = nameOf(unescape(uri.replace(/[?#].*/s, '')))
  return /^\.{0,2}$/.test(name) ? undefined : name
}

const blobOf = (resource: object): string =>
  'blob' in resource && typeof resource.blob === 'string' ? resource.blob : ''

function textOf(block: ContentBlock, unread: ReadonlyMap<string, string>): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type} of type ${block.mimeType}, not shown]`
    case 'resource_link': {
      const described = [block.name, block.title, block.mimeType, block.description].filter(Boolean).join(', ')
      const reason = unread.get(block.uri)
      return `[resource ${described}: ${block.uri}${reason === undefined ? '' : `, not read: ${reason}`}]`
    }
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[resource ${block.resource.uri}, not text]`
    default:
      return ''
  }
}

import type { Attachment } from '../../kernel/attachment.ts'
import { inTags } from '../../kernel/prompt-data.ts'
import type { Message, ToolResultBlock } from './port.ts'

export const hasAttachments = (messages: readonly Message[]): boolean =>
  messages.some((message) => message.role === 'tool' && message.results.some(({ attachments }) => attachments))

/** The messages for a model that takes no files: the outputs name them, and say that they cannot be seen. */
export const withoutAttachments = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) =>
    message.role === 'tool' ? { ...message, results: message.results.map(withoutFiles) } : message,
  )

function withoutFiles({ attachments, ...result }: ToolResultBlock): ToolResultBlock {
  return attachments
    ? { ...result, output: `${result.output}\n[The attached files cannot be shown to this model.]` }
    : result
}

/** A text file as a part of the message, for models that take no text as a file. */
export const textOfFile = ({ name, base64 }: Attachment): string =>
  inTags('attachment', Buffer.from(base64, 'base64').toString(), { name })

/** Its media type has several names. */
export const isWav = (mediaType: string): boolean => /^audio\/(?:x-|vnd\.)?wave?$/.test(mediaType)

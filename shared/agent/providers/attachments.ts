import type { Attachment } from '../../kernel/attachment.ts'
import { inTags } from '../../kernel/prompt-data.ts'
import type { Message, ToolResultBlock } from './port.ts'

export const hasAttachments = (messages: readonly Message[]): boolean =>
  messages.some((message) => message.role === 'tool' && message.results.some(({ attachments }) => attachments))

/** The messages for a model that accepts no files: outputs name the files, and say that the model cannot see them. */
export const withoutAttachments = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) =>
    message.role === 'tool' ? { ...message, results: message.results.map(withoutFiles) } : message,
  )

function withoutFiles({ attachments, ...result }: ToolResultBlock): ToolResultBlock {
  return attachments
    ? { ...result, output: `${result.output}\n[The attached files cannot be shown to this model.]` }
    : result
}

/** A text file as a part of the message, for models that do not accept text files. */
export const textOfFile = ({ name, base64 }: Attachment): string =>
  inTags('attachment', Buffer.from(base64, 'base64').toString(), { name })

/** Whether this is one of the media types of WAV files. */
export const isWav = (mediaType: string): boolean => /^audio\/(?:x-|vnd\.)?wave?$/.test(mediaType)

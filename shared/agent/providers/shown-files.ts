import { type AttachedFile, type Attachment, type FileKind, fileKindOf, fileLine } from '../../kernel/attachment.ts'
import { AppError } from '../../kernel/errors.ts'
import { quoted } from '../../kernel/text.ts'
import { failure } from './failures/failures.ts'
import type { Failure, Message, ModelProvider, ModelRoute } from './port.ts'

/** Reads the bytes of a file, `undefined` when it has expired or was deleted. Throws `unavailable`. */
export type ReadFile = (file: AttachedFile) => Promise<Buffer | undefined>

type UserMessage = Extract<Message, { role: 'user' }>
type Shown = { messages: readonly Message[] } | { failure: Failure }

/** The most bytes of files in one request: with base64 they stay below the 32 MB that providers accept. */
export const MAX_SHOWN_BYTES = 20 * 1024 * 1024
/** The model sees the beginning of a longer text, and reads the rest with tools. */
const MAX_TEXT_BYTES = 256 * 1024

export const hasFiles = (messages: readonly Message[]): boolean =>
  messages.some((message) => message.role === 'user' && message.files !== undefined)

/**
 * The messages with the bytes of their files, which the history does not keep (D47). Each file is named in the text, too. Files of older
 * messages are only named if the model does not accept them, or newer ones leave no room; a file of the last message then is a failure.
 */
export async function showFiles(messages: readonly Message[], route: ModelRoute, read: ReadFile): Promise<Shown> {
  const last = messages.findLast(({ role }) => role === 'user') as UserMessage | undefined
  const refused = last?.files?.find((file) => !file.is_named && !takesFile(route, file))
  if (refused) return { failure: unsupported(refused, route) }
  let room = MAX_SHOWN_BYTES
  const fits = ({ bytes }: AttachedFile) => bytes <= room && (room -= bytes) >= 0
  const shown: Message[] = []
  try {
    for (const message of messages.toReversed()) {
      if (message.role !== 'user' || !message.files) shown.push(message)
      else shown.push(await showMessage(message, message.files, { route, read, fits }))
    }
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause
    const text = 'the attached files cannot be read from the store now'
    return { failure: failure('storage_unavailable', 'files_unreadable', text, { isRetryable: true }) }
  }
  return { messages: shown.reverse() }
}

type Showing = { route: ModelRoute; read: ReadFile; fits(file: AttachedFile): boolean }

async function showMessage(
  { files: _files, ...message }: UserMessage,
  files: readonly AttachedFile[],
  { route, read, fits }: Showing,
): Promise<Message> {
  const attachments: Attachment[] = []
  const lines: string[] = []
  for (const file of files) {
    const { bytes, line } = await contentOf(file)
    lines.push(line)
    if (bytes) attachments.push(attachmentOf(file, bytes))
  }
  const text = [...(message.text === '' ? [] : [message.text]), lines.join('\n')].join('\n\n')
  return { ...message, text, ...(attachments.length > 0 && { attachments }) }

  async function contentOf(file: AttachedFile): Promise<{ bytes?: Buffer; line: string }> {
    if (file.is_named) return { line: fileLine(file, EARLIER) }
    if (!takesFile(route, file)) return { line: fileLine(file, '; it cannot be shown to this model') }
    if (!fits(file)) return { line: fileLine(file, EARLIER) }
    const bytes = await read(file)
    return bytes ? { bytes, line: fileLine(file) } : { line: fileLine(file, '; it has expired or was deleted') }
  }
}

const EARLIER = '; it is not shown any more'

function attachmentOf({ name, media_type: mediaType }: AttachedFile, bytes: Buffer): Attachment {
  if (fileKindOf(mediaType) !== 'text' || bytes.length <= MAX_TEXT_BYTES)
    return { name, mediaType, base64: bytes.toString('base64') }
  const note = `\n[cut: these are the first ${MAX_TEXT_BYTES / 1024} KiB of the file; tools can read all of it]`
  const text = new TextDecoder().decode(bytes.subarray(0, MAX_TEXT_BYTES), { stream: true }) // Drops a character that was cut.
  return { name, mediaType, base64: Buffer.from(text + note).toString('base64') }
}

/** The kinds of files that models have refused in this process. */
const refusals = new WeakMap<ModelProvider, Map<string, Set<FileKind>>>()
const MAX_MODELS = 64

/** Whether the model accepts the file: its request format has a place for it, and the model has not refused this kind before. */
export function takesFile({ provider, model }: ModelRoute, { media_type }: Pick<AttachedFile, 'media_type'>): boolean {
  const kind = fileKindOf(media_type)
  if (kind === undefined || refusals.get(provider)?.get(model)?.has(kind)) return false
  return provider.takesFile?.(model, media_type) ?? true
}

const WORDS: Record<FileKind, RegExp> = {
  image: /image|vision/i,
  pdf: /pdf|document|file/i,
  audio: /audio/i,
  text: /(?!)/,
}
const REFUSAL =
  /(?:support|accept|capab|allow|modal|invalid|unknown).*(?:image|vision|file|media|pdf|document|audio)|(?:image|vision|file|media|pdf|document|audio).*(?:support|accept|capab|allow|invalid)/is

/**
 * Returns the failure of a call whose files the provider has refused, and remembers that for the model. Every other
 * failure is returned unchanged.
 */
export function fileRefusal(found: Failure, messages: readonly Message[], { provider, model }: ModelRoute): Failure {
  if (found.code !== 'provider_rejected' || !REFUSAL.test(found.message)) return found
  const kinds = new Set(
    messages
      .flatMap((message) => (message.role === 'user' ? (message.attachments ?? []) : []))
      .flatMap(({ mediaType }) => fileKindOf(mediaType) ?? []),
  )
  kinds.delete('text')
  if (kinds.size === 0) return found
  const named = [...kinds].filter((kind) => WORDS[kind].test(found.message))
  const ofProvider = refusals.get(provider) ?? new Map<string, Set<FileKind>>()
  if (ofProvider.size >= MAX_MODELS) ofProvider.clear()
  refusals.set(provider, ofProvider)
  ofProvider.set(model, new Set([...(ofProvider.get(model) ?? []), ...(named.length > 0 ? named : kinds)]))
  return { ...found, code: 'unsupported_attachment', isFailover: true }
}

/** The message for a file that a model cannot get. */
export const refusalOf = ({ name, media_type }: AttachedFile, model: string): string =>
  fileKindOf(media_type) === undefined
    ? `${quoted(name)} is ${media_type} by its content, which no model takes: images (PNG, JPEG, GIF, WebP), PDF, audio and text can be attached`
    : `the model ${quoted(model)} does not take ${quoted(name)}, which is ${media_type}: leave it out, or choose a model that takes such files`

const unsupported = (file: AttachedFile, { model }: ModelRoute): Failure =>
  failure('unsupported_attachment', 'unsupported_attachment', refusalOf(file, model), { isFailover: true })

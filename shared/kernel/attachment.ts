/** A file that the model gets beside a text. `base64` holds its bytes; `mediaType` is for example `image/png`. */
export type Attachment = { name: string; mediaType: string; base64: string }

/** A file that is attached to a message, without its bytes (D47). Its path in the workspace is set when it is added to a history. */
export type AttachedFile = {
  file_id: string
  name: string
  media_type: string
  bytes: number
  path?: string
  /** Set when models only get its name, because it is old and newer content needs the room. */
  is_named?: true
}

export type FileKind = 'image' | 'pdf' | 'audio' | 'text'

const KINDS: [kind: FileKind, types: RegExp][] = [
  ['image', /^image\/(?:png|jpeg|gif|webp)$/],
  ['pdf', /^application\/pdf$/],
  ['audio', /^audio\//],
  ['text', /^text\/|^application\/(?:json|jsonl|xml|yaml)$|^image\/svg\+xml$/],
]

/** The kind of file that a model must support; `undefined` if no model accepts the type. */
export const fileKindOf = (mediaType: string): FileKind | undefined =>
  KINDS.find(([, types]) => types.test(mediaType))?.[0]

/** The largest image that all providers accept, and the largest file of a tool. */
export const MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024

/** The first bytes of the file types that models accept. */
const SIGNATURES: [mediaType: string, bytes: RegExp][] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['application/pdf', /^%PDF-/],
]

/** The media type of an image or a PDF by its first bytes, at least 12 where there are 12; `undefined` for every other file. */
export function attachmentType(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 16)).toString('latin1')
  return SIGNATURES.find(([, pattern]) => pattern.test(start))?.[0]
}

/** Names an attachment in the text of a tool's output, for models that do not accept the file. */
export function attachmentLine({ name, mediaType, base64 }: Attachment): string {
  return `[${name}: ${mediaType}, ${kib((base64.length * 3) / 4)}, attached]`
}

const kib = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`

/** Names a file that is attached to a message. `more`: why it is not shown. */
export const fileLine = ({ name, path = name, media_type, bytes }: AttachedFile, more = ''): string =>
  `[attached: ${JSON.stringify(path)}, ${media_type}, ${kib(bytes)}${more}]`

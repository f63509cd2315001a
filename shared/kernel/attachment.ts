/** A file that a tool gives the model beside its text. `base64` holds its bytes; `mediaType` is such as `image/png`. */
export type Attachment = { name: string; mediaType: string; base64: string }

/** The largest file that all providers take. */
export const MAX_ATTACHMENT_BYTES = 5 * 1024 * 1024

/** How the files begin that models take. */
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

/** Names an attachment in the text of a tool's output, which models read that do not take the file. */
export function attachmentLine({ name, mediaType, base64 }: Attachment): string {
  return `[${name}: ${mediaType}, ${Math.ceil((base64.length * 3) / 4 / 1024)} KiB, attached]`
}

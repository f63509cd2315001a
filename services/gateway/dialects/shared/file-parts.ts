import type { Attachment } from '../../starting/attach.ts'
import type { Fields } from './fields.ts'

/** The files of a message in any dialect; parts that are no files are skipped. */
export const filesIn = (message: Fields, list: string): Attachment[] =>
  Array.isArray(message.get(list)) ? message.objects(list).flatMap((part) => fileOf(part) ?? []) : []

/** The files of a past message in a client's history; if one of them is not supported, all are left out. */
export function pastFilesIn(message: Fields, list: string): Attachment[] {
  try {
    return filesIn(message, list)
  } catch {
    return []
  }
}

/** The file of a part of OpenAI's, of the AI SDK's UI, of AG-UI or of A2A; `undefined` for a part of another kind. Throws `invalid_request`. */
export function fileOf(part: Fields): Attachment | undefined {
  if (part.has('raw')) return named(part, { data: part.text('raw') }, 'filename', 'mediaType')
  const type = part.get('type')
  if (type === undefined) return part.has('url') ? named(part, fileAt(part, 'url'), 'filename', 'mediaType') : undefined
  return typeof type === 'string' && Object.hasOwn(PARTS, type) ? PARTS[type]?.(part) : undefined
}

/** Reads the file of a part, by the part's type. In chat completions its fields are one level deeper than in the Responses API. */
const PARTS: Readonly<Record<string, (part: Fields) => Attachment>> = {
  image_url: (part) => fileAt(part.object('image_url'), 'url'),
  input_image: (part) => (part.has('file_id') ? idOf(part, 'file_id') : fileAt(part, 'image_url')),
  input_audio: (part) => {
    const audio = part.object('input_audio')
    return { data: audio.text('data'), media_type: `audio/${audio.optionalText('format') ?? 'wav'}`, at: part.at }
  },
  input_file: openAiFile,
  file: (part) =>
    part.has('file') ? openAiFile(part.object('file')) : named(part, fileAt(part, 'url'), 'filename', 'mediaType'),
  binary: (part) => {
    if (part.has('id')) return idOf(part, 'id')
    const file = part.has('url') ? fileAt(part, 'url') : { data: part.text('data'), at: part.at }
    return named(part, file, 'filename', 'mimeType')
  },
  ...Object.fromEntries(['image', 'audio', 'video', 'document'].map((type) => [type, sourced])),
}

function openAiFile(file: Fields): Attachment {
  if (file.has('file_id')) return idOf(file, 'file_id')
  if (file.has('file_url')) return named(file, fileAt(file, 'file_url'), 'filename')
  const data = file.text('file_data')
  return named(file, data.startsWith('data:') ? fileAt(file, 'file_data') : { data }, 'filename')
}

/** AG-UI's media parts, each with its own `source`. */
function sourced(part: Fields): Attachment {
  const source = part.object('source')
  const kind = source.text('type')
  if (kind === 'file') return idOf(source, 'value')
  return named(source, kind === 'url' ? fileAt(source, 'value') : { data: source.text('value') }, '', 'mimeType')
}

const idOf = (part: Fields, name: string): Attachment => ({ file_id: part.text(name), at: `${part.at}/${name}` })

const OWN_FILE = /^(?:https?:\/\/[^/]+)?(?:\/api)?\/v1\/files\/(file_[0-9a-f]{32})(?:\/content)?$/
const DATA_URL = /^data:([^;,]*)(?:;[^;,]*)*?(;base64)?,([^]*)$/

/** The file of an address: its bytes in a data URL, one of this server's files, or something to fetch. */
function fileAt(part: Fields, name: string): Attachment {
  const url = part.text(name)
  const at = part.at
  const [, ownId] = OWN_FILE.exec(url) ?? []
  if (ownId !== undefined) return { file_id: ownId, at }
  if (!url.startsWith('data:')) return { url, at }
  const [, type = '', isBase64, text = ''] = DATA_URL.exec(url) ?? []
  try {
    const data = isBase64 ? text : Buffer.from(decodeURIComponent(text)).toString('base64')
    return { data, at, ...(type !== '' && { media_type: type }) }
  } catch {
    throw part.wrong(name, 'an address, or a data URL')
  }
}

/** Adds the name and the type that stand beside the file. */
function named(part: Fields, file: Attachment, nameField: string, typeField = ''): Attachment {
  const [name, type] = [nameField && part.optionalText(nameField), typeField && part.optionalText(typeField)]
  if (name && !FILE_NAME.test(name))
    throw part.wrong(nameField, 'the name of a file, without a folder, of at most 255 characters')
  return { at: part.at, ...file, ...(name && { name }), ...(type && { media_type: type }) }
}

const FILE_NAME = /^(?!\.{1,2}$)[^/\\\p{Cc}]{1,255}$/u

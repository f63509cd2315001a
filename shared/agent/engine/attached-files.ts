import { extname } from 'node:path'
import type { AttachedFile } from '../../kernel/attachment.ts'
import { countChars, truncate } from '../../kernel/text.ts'
import type { Message } from '../providers/port.ts'
import type { ReadFile } from '../providers/shown-files.ts'
import { placesFiles } from '../tools/workspace/attached.ts'
import type { Tools } from './resources.ts'

/** The folder of the workspace in which tools find the files of messages. */
const FOLDER = 'attachments'
/** File systems take names of 255 bytes. */
const MAX_NAME_BYTES = 200

/** Gives each file of a new message its path in the workspace, a path that no other file of the conversation has. */
export function placed(files: readonly AttachedFile[], earlier: readonly Message[]): AttachedFile[] {
  const taken = new Map(attachedIn(earlier).map((file) => [keyOf(file.path), file.file_id]))
  return files.map((file) => {
    const { name, file_id } = file
    let path = `${FOLDER}/${shortened(name)}`
    for (let n = 2; (taken.get(keyOf(path)) ?? file_id) !== file_id; n++) path = `${FOLDER}/${shortened(name, `-${n}`)}`
    taken.set(keyOf(path), file_id)
    return { ...file, path }
  })
}

/** Tools that find the files of a conversation in their workspace. */
export function toolsWithFiles(tools: Tools, { messages, readFile }: Attached): Tools {
  if (!readFile) return tools
  let place: (() => Promise<void>) | undefined // Most runs call no tool.
  return {
    ...tools,
    async bringFiles() {
      await tools.bringFiles?.()
      place ??= placesFiles(() => attachedIn(messages()), { workspace: tools.workspace, readFile })
      await place()
    },
  }
}

type Attached = { messages(): readonly Message[]; readFile: ReadFile | undefined }

/** The files of the messages, oldest first. */
export const attachedIn = (messages: readonly Message[]): AttachedFile[] =>
  messages.flatMap((message) => (message.role === 'user' ? (message.files ?? []) : []))

/** Some file systems do not distinguish upper from lower case. */
const keyOf = (path: string | undefined): string | undefined => path?.normalize('NFC').toLowerCase()

/** Shortens a name to the limit, keeping its extension; `mark` is put before the extension. */
function shortened(name: string, mark = ''): string {
  const end = extname(name).slice(0, 20)
  let base = end === '' ? name : name.slice(0, -extname(name).length)
  while (Buffer.byteLength(base + mark + end) > MAX_NAME_BYTES) base = truncate(base, countChars(base) - 1, '')
  return base + mark + end
}

import type { Schema } from '../../../shared/client/client.ts'
import type { Io } from '../io.ts'
import { plainJson } from '../text/plain.ts'
import { askLine } from './ask-line.ts'
import { editorOf, inEditor } from './in-editor.ts'

type Input = Schema<'JsonObject'>

/** The input of a call that waits until `expiresAt`; `signal` is aborted when someone else has decided the request. */
export type Edited = { input: Input; expiresAt: Date; signal: AbortSignal }

/**
 * Lets the user change an input in VISUAL or EDITOR, otherwise on a line. Returns `input` itself if
 * it was not changed, and `undefined` if the user cancelled. Throws for a text that is not a JSON
 * object.
 */
export async function editInput(io: Io, { input, expiresAt, signal }: Edited): Promise<Input | undefined> {
  const editor = editorOf(io)
  if (editor) io.stderr.write(`  ${deadlineOf(expiresAt)}\n`)
  const text = editor
    ? await inEditor(io, { editor, name: 'input.json', text: `${plainJson(input, 2)}\n` })
    : await askLine(io, { question: questionOf('input', expiresAt), given: plainJson(input), signal, hasEscape: true })
  if (text === undefined) return undefined
  const changed = readObject(text)
  return JSON.stringify(changed) === JSON.stringify(input) ? input : changed
}

/** Asks for a text, and shows the time at which the request will be denied. */
export const questionOf = (what: string, expiresAt: Date): string =>
  `  ${deadlineOf(expiresAt)}, Escape goes back\n  ${what}: `

/** A time of day, because a countdown cannot be shown while a line is typed. */
const deadlineOf = (expiresAt: Date): string => `denied at ${expiresAt.toTimeString().slice(0, 8)}`

/** Reads a JSON object. Throws with the reason. */
export function readObject(text: string): Input {
  const value = JSON.parse(text) as unknown
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Input
  throw new SyntaxError('the input must be a JSON object')
}

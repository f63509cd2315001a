import type { Schema } from '../../../shared/client/client.ts'
import type { Io } from '../io.ts'
import { plainJson } from '../text/plain.ts'
import { askLine } from './ask-line.ts'
import { editorOf, inEditor } from './in-editor.ts'

type Input = Schema<'JsonObject'>

/** Lets the person change an input: in VISUAL or EDITOR, else on a line. `undefined` for one that was left as it is. Throws for what is no JSON object. */
export async function editInput(io: Io, input: Input, signal: AbortSignal): Promise<Input | undefined> {
  const editor = editorOf(io)
  const text = editor
    ? await inEditor(io, { editor, name: 'input.json', text: `${plainJson(input, 2)}\n` })
    : await onLine(io, plainJson(input), signal)
  if (text === undefined) return undefined
  const changed = readObject(text)
  return JSON.stringify(changed) === JSON.stringify(input) ? undefined : changed
}

/** Reads a JSON object. Throws with the reason. */
export function readObject(text: string): Input {
  const value = JSON.parse(text) as unknown
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Input
  throw new SyntaxError('the input must be a JSON object')
}

const onLine = (io: Io, given: string, signal: AbortSignal): Promise<string | undefined> =>
  askLine(io, { question: '  input: ', given, signal })

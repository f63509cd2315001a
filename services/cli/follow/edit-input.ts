import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Schema } from '../../../shared/client/client.ts'
import type { Io } from '../io.ts'
import { plainJson } from '../text/plain.ts'
import { askLine } from './ask-line.ts'

type Input = Schema<'JsonObject'>

/** Lets the person change an input: in VISUAL or EDITOR, else on a line. `undefined` for one that was left as it is. Throws for what is no JSON object. */
export async function editInput(io: Io, input: Input, signal: AbortSignal): Promise<Input | undefined> {
  const editor = io.env['VISUAL'] || io.env['EDITOR']
  const text = editor ? await inEditor(io, editor, plainJson(input, 2)) : await onLine(io, plainJson(input), signal)
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

async function inEditor({ cwd, env }: Io, editor: string, text: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'ae-')) // For its owner only.
  try {
    const file = join(dir, 'input.json')
    await writeFile(file, `${text}\n`, { mode: 0o600 })
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { cwd, env, stdio: 'inherit' })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`the editor ended with ${code}`)
    return await readFile(file, 'utf8')
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

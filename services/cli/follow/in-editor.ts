import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Io } from '../io.ts'

/** The person's editor: VISUAL or EDITOR. */
export const editorOf = ({ env }: Io): string | undefined => env['VISUAL'] || env['EDITOR'] || undefined

export type EditedFile = { editor: string; name: string; text: string }

/** Lets the user change a text in the editor, in a file of that name that only its owner can read and that is then removed. Returns the text. */
export async function inEditor({ cwd, env }: Io, { editor, name, text }: EditedFile): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'ae-')) // Only its owner can open the folder.
  try {
    const file = join(dir, name)
    await writeFile(file, text, { mode: 0o600 })
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { cwd, env, stdio: 'inherit' })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`the editor ended with ${code}`)
    return await readFile(file, 'utf8')
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

let building: Promise<unknown> | undefined

/** Resolves with the program of a role as the image has it. The first call of a process builds all of them. */
export async function builtProgram(role: string): Promise<string> {
  building ??= promisify(execFile)(process.execPath, [join(import.meta.dirname, 'build-programs.ts')])
  await building
  return join(import.meta.dirname, '../built', role, 'main.ts')
}

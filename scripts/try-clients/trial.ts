import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Where a client is made, and the server that it is for. */
export type Trial = { folder: string; url: string; token: string }

const run = promisify(execFile)

/** Resolves with what the command prints. Rejects with its output when it fails. */
export async function call(cwd: string, [command = '', ...args]: readonly string[], env: object = {}): Promise<string> {
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await run(command, args, options).catch((cause: { stdout: string; stderr: string }) => {
    throw new Error(`${command} ${args.join(' ')} failed:\n${cause.stdout}${cause.stderr}`.slice(0, 8_000))
  })
  return stdout
}

/** Writes the API description that the server serves, and the program, into the folder. */
export async function prepare({ folder, url }: Trial, program: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const served = await fetch(`${url}/openapi.json`)
  await writeFile(join(folder, 'openapi.json'), await served.text())
  await writeFile(join(folder, program), text)
}

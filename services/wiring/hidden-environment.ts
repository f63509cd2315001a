import { randomUUID } from 'node:crypto'
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

type Program = Pick<NodeJS.Process, 'execPath' | 'execArgv' | 'argv' | 'execve' | 'platform'>

/** Set for the program that replaces this one: its standard input is a file with the hidden variables. */
const MARK = 'AGENT_ENGINE_HIDDEN_VARIABLES'
const STDIN = 0

/**
 * Replaces this process by itself, with the same id, and without the secrets in the environment that it was started with: a program that it
 * starts later runs as the same user and can read `/proc/$PPID/environ`, which does not change when a variable is deleted. The new
 * process gets them in a file that has no name any more. Returns when there is nothing to hide, or on a system other than Linux.
 */
export function hideSecrets(program: Program, env: Env, secrets: readonly string[]): void {
  if (env[MARK] !== undefined || program.platform !== 'linux' || !program.execve) return
  const entries = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const hidden = entries.filter(([name, value]) => isSecret(name, value, secrets))
  if (hidden.length === 0) return
  putOnStdin(JSON.stringify(Object.fromEntries(hidden)))
  const names = new Set(hidden.map(([name]) => name))
  const shown = Object.fromEntries(entries.filter(([name]) => !names.has(name)))
  const args = [program.execPath, ...program.execArgv, ...program.argv.slice(1)]
  program.execve(program.execPath, args, { ...shown, [MARK]: 'stdin' })
}

/** The environment with the variables that `hideSecrets` has passed on. */
export function readHidden(env: Env): Env {
  if (env[MARK] !== 'stdin' || !isUnnamedFile(STDIN)) return env
  const hidden = JSON.parse(readFileSync(STDIN, 'utf8')) as Record<string, string>
  closeSync(STDIN)
  openSync('/dev/null', constants.O_RDONLY) // Takes the lowest free number, that of the standard input.
  return { ...env, ...hidden }
}

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSW|CREDENTIAL/i
/** A shorter value would be found in ordinary text. */
const MIN_CHARS = 4

const isSecret = (name: string, value: string, secrets: readonly string[]): boolean =>
  SECRET_NAME.test(name) || secrets.some((secret) => secret.length >= MIN_CHARS && value.includes(secret))

const MEMORY_FOLDER = '/dev/shm'

/** Node passes the standard streams on to the new program, and no other file. */
function putOnStdin(text: string): void {
  const { O_RDWR, O_CREAT, O_EXCL } = constants
  closeSync(STDIN)
  const path = join(existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir(), `agent-engine-${randomUUID()}`)
  const file = openSync(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
  rmSync(path)
  if (file !== STDIN) throw new Error('the standard input could not be replaced')
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at) // Leaves the reading position at 0.
}

function isUnnamedFile(file: number): boolean {
  const stats = fstatSync(file)
  return stats.isFile() && stats.nlink === 0
}

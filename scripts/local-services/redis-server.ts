import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'

const ABSENT =
  'No redis-server was found: install one on PATH (Debian: apt-get install redis-server, macOS: brew install redis). ' +
  'For scripts/cluster, you can set REDIS_URL to a running Redis instead.'

/** Installs redis-server with apt where it is missing (D1.2) and returns its version. Throws with the possible remedies. */
export async function ensureRedisServer(say: (line: string) => void): Promise<string> {
  const found = await findRedisServer()
  if (found !== undefined) return found
  if (!(await canRun('apt-get'))) throw new Error(ABSENT)
  say('Installing Redis (apt-get install redis-server) ...')
  await aptInstall('redis-server')
  const installed = await findRedisServer()
  if (installed === undefined) throw new Error(`apt-get could not install redis-server: see above.\n${ABSENT}`)
  say(`Redis ${installed} is installed.`)
  return installed
}

let known: Promise<string | undefined> | undefined

/** The version of the `redis-server` on PATH, which is looked up once. Throws with the command that installs one. */
export async function requireRedisServer(): Promise<string> {
  const found = await (known ??= findRedisServer())
  if (found !== undefined) return found
  known = undefined
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure redis\` installs it where apt is available.`)
}

const run = promisify(execFile)

async function findRedisServer(): Promise<string | undefined> {
  const output = await run('redis-server', ['--version']).catch(() => undefined)
  return output && (/\bv=(\S+)/.exec(output.stdout)?.[1] ?? 'of unknown version')
}

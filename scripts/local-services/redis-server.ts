import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'

const ABSENT =
  'There is no redis-server: install one so that it is on PATH (Debian: apt-get install redis-server, macOS: brew install redis). ' +
  'For scripts/cluster, REDIS_URL may name one that runs already.'

/** Leaves a `redis-server` on PATH, from Debian's package where apt is there (D1.2), and returns its version. Throws with the choices. */
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

/** The version of the `redis-server` on PATH. Throws with the command that installs one. */
export async function requireRedisServer(): Promise<string> {
  const found = await findRedisServer()
  if (found !== undefined) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure redis\` installs it where apt is there.`)
}

const run = promisify(execFile)

async function findRedisServer(): Promise<string | undefined> {
  const said = await run('redis-server', ['--version']).catch(() => undefined)
  return said && (/\bv=(\S+)/.exec(said.stdout)?.[1] ?? 'of unknown version')
}

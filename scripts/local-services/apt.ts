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

/** As root, or through a sudo that asks for nothing. What it says goes to stderr: stdout stays the program's. */
export async function aptInstall(name: string): Promise<void> {
  const command = ['sh', INSTALLER, name]
  const [program = 'sh', ...args] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command]
  const child = spawn(program, args, { stdio: ['ignore', 2, 2] })
  // Whether it worked is seen by looking for the program again.
  await once(child, 'close').catch(() => undefined)
}

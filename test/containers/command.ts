import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

export type CommandOptions = {
  cwd?: string
  env?: Readonly<NodeJS.ProcessEnv>
  /** Its standard input. By default it is empty. */
  input?: string
}

export type Answer = { code: number | null; stdout: string; stderr: string }

/** Runs a program to its end. Throws only when it cannot be started. */
export async function tryCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<Answer> {
  const { input = '', ...more } = options
  const child = spawn(command, args, { ...more, stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  child.stdin.on('error', () => {}).end(input) // A program that ends before it has read this shows that by its exit.
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}

/** Runs a program to its end and returns its standard output. Throws with the end of its output when it fails. */
export async function runCommand(command: string, args: readonly string[], options?: CommandOptions): Promise<string> {
  const { code, stdout, stderr } = await tryCommand(command, args, options)
  if (code === 0) return stdout
  const end = `${stdout}${stderr}`.trim().split('\n').slice(-30).join('\n')
  throw new Error(`\`${command} ${args.join(' ')}\` ended with exit code ${code}:\n${end}`)
}

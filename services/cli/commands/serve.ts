import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Command } from 'commander'
import type { Cli, Define } from '../cli.ts'
import { findAddress, openInBrowser } from '../connect/open-console.ts'
import type { Io } from '../io.ts'

export function defineServe(command: Command, cli: Cli): void {
  const script = `${cli.io.root}scripts/start`
  command
    .description('Runs the standalone form on this machine: scripts/start with the same environment.')
    .option('--open', 'open the console in the browser once the server listens')
    .option(
      '--env-file <file>',
      'settings for the server, such as `ae init` writes; those of the environment count before them',
    )
    .helpOption(false)
    .option('-h, --help', 'print this, and the settings of the server')
    .action(({ open, help, envFile }: { open?: boolean; help?: boolean; envFile?: string }) => {
      if (help) cli.output.out(`${command.helpInformation()}\n`)
      const env = envFile === undefined ? {} : parseEnv(readFileSync(resolve(cli.io.cwd, envFile), 'utf8'))
      const onListening = open ? (url: string) => openInBrowser(url, cli) : undefined
      return start(help ? [script, '--help'] : [script], cli, { env, onListening })
    })
}

export const defineCluster = starts(
  ({ root }) => [`${root}scripts/cluster`],
  'Runs the clustered form on this machine: scripts/cluster with the same arguments.',
)

export const defineDoctor = starts(
  ({ root, nodePath }) => [nodePath, `${root}scripts/doctor/main.ts`],
  'Looks for faults in the configuration and in what the processes use.',
)

/** All arguments go to the script, including `--help`. */
function starts(program: (io: Io) => [string, ...string[]], description: string): Define {
  return (command, cli) =>
    void command
      .description(description)
      .argument('[arguments...]', "the script's arguments")
      .helpOption(false)
      .allowUnknownOption()
      .action((args: string[]) => start([...program(cli.io), ...args], cli))
}

/** A Ctrl-C also reaches the child, which is in the same process group, so this process only waits for its end. */
async function start(
  [file = '', ...args]: readonly string[],
  { io, exitWith }: Cli,
  { env = {}, onListening }: { env?: NodeJS.Dict<string>; onListening?: ((url: string) => void) | undefined } = {},
): Promise<void> {
  const release = io.onInterrupt(() => undefined)
  const stdout = onListening ? 'pipe' : 'inherit'
  const child = spawn(file, args, { stdio: ['inherit', stdout, 'inherit'], env: { ...env, ...io.env }, cwd: io.root })
  child.stdout?.pipe(io.stdout, { end: false })
  if (child.stdout && onListening) findAddress(child.stdout, onListening)
  const releaseTerm = io.onTerminate(() => child.kill('SIGTERM'))
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  release()
  releaseTerm()
  exitWith(code ?? 128 + (signal ? constants.signals[signal] : 0))
}

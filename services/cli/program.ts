import { Command, CommanderError } from 'commander'
import { ApiError, ConnectionFailed } from '../../shared/client/errors.ts'
import { CATALOGUE } from './catalogue.ts'
import { type Cli, createCli } from './cli.ts'
import { DEFAULT_URL } from './connect/target.ts'
import { CliError, EXIT, EXIT_CODE_HELP, type ExitCode, exitCodeOf, explain } from './exit-codes.ts'
import type { Io } from './io.ts'
import { plain } from './text/plain.ts'

const ENVIRONMENT_HELP = `Environment:
  AE_URL      the address of the API [the profile's, else ${DEFAULT_URL}]
  AE_TOKEN    the token, instead of the profile's
  AE_PROFILE  the profile to use
  NO_COLOR    no colours`

/** Runs the command that the arguments name, and returns its exit code. */
export async function runProgram(io: Io, args: readonly string[], version: string): Promise<number> {
  let code: number = EXIT.ok
  const program = new Command('ae')
  const cli = createCli(
    io,
    () => program.opts(),
    (ended) => {
      code = ended
    },
  )
  describe(program, cli, version)
  const isWhole = args.includes('completion')
  for (const { name, group, summary, load } of CATALOGUE) {
    const command = program.command(name).summary(summary).description(summary).helpGroup(group)
    if (isWhole || args.includes(name)) (await load())(command, cli)
  }
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (cause) {
    return fail(cause, cli)
  }
}

function describe(program: Command, { output }: Cli, version: string): void {
  program
    .description('agent-engine at the command line: runs, permissions, flows and plans')
    .version(version, '-V, --version')
    .option('--url <url>', 'the address of the API')
    .option('--profile <name>', 'the profile to use')
    .configureHelp({
      showGlobalOptions: true,
      // Those of a command with commands, such as `ae approvals`, are not for these.
      visibleGlobalOptions: (command) => (command === program ? [] : [...program.options]),
      helpWidth: Math.min(output.columns(), 100),
    })
    .configureOutput({
      writeOut: (text) => output.out(text),
      writeErr: (text) => output.err(text),
      outputError: (text, write) => write(plain(text)), // It repeats what was typed.
    })
    .exitOverride()
    .addHelpText('after', `\n${EXIT_CODE_HELP}\n\n${ENVIRONMENT_HELP}`)
}

async function fail(cause: unknown, cli: Cli): Promise<ExitCode> {
  // Commander has printed the help or what is wrong.
  if (cause instanceof CommanderError) return cause.exitCode === 0 ? EXIT.ok : EXIT.usage
  const wrongUrl = cause instanceof ApiError ? await findWrongUrl(cli) : undefined
  if (wrongUrl) return fail(wrongUrl, cli)
  const { output } = cli
  const code = exitCodeOf(cause)
  const isUnknown = code === undefined && !isSystemError(cause)
  const url = isUnknown || code === EXIT.serverAway ? (await cli.target()).url : ''
  const { message, hints } = explain(isUnknown ? unexpectedAnswer(cause) : cause, url)
  const { style } = output
  output.err(`${style.red(style.symbols.bad)} ${plain(message)}\n${hints.map((hint) => `  ${plain(hint)}\n`).join('')}`)
  return code ?? (isUnknown ? EXIT.serverAway : EXIT.usage)
}

/** The address that was given, when it is the fault that it lacks the base path. */
async function findWrongUrl(cli: Cli): Promise<CliError | undefined> {
  const { url } = await cli.target()
  const { withBasePath } = await import('./connect/base-path.ts')
  const right = await withBasePath(url)
  if (right === undefined) return undefined
  const hint = `Use ${right} for --url, AE_URL or the profile.`
  return new CliError(EXIT.settings, `${url} is the address of a server, and not of its API`, hint)
}

/** A command stumbles over an answer that has not the shape of the API's. A trace would show it raw, and says nothing to a person. */
const unexpectedAnswer = (cause: unknown): ConnectionFailed =>
  new ConnectionFailed(
    `its answer is not one of this version (${cause instanceof Error ? cause.message : String(cause)})`,
  )

/** A file that is not there, and the like: the message of Node says what it is. */
const isSystemError = (cause: unknown): boolean =>
  cause instanceof Error && typeof (cause as NodeJS.ErrnoException).syscall === 'string'

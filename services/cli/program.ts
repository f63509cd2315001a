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
    if (isHome(program, args, io)) {
      const { openHome } = await import('./home/home.ts')
      await openHome(cli, (words) => runProgram(io, [...args, ...words], version))
      return code
    }
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (cause) {
    return fail(cause, { cli, named: namedCommand(program, args) })
  }
}

/** Whether a person at a terminal has named no command. */
function isHome(program: Command, args: readonly string[], { stdin, stdout, stderr, env }: Io): boolean {
  if (!(stdin.isTTY && stdout.isTTY && stderr.isTTY) || env['TERM'] === 'dumb') return false
  const { operands, unknown } = program.parseOptions([...args])
  return operands.length === 0 && unknown.length === 0
}

/** The command that the arguments name, as far as they name one. */
const namedCommand = (program: Command, args: readonly string[]): Command =>
  args.reduce((found, word) => found.commands.find((each) => each.name() === word) ?? found, program)

/** The command with those above it, as a person types it: `ae flows run`. */
const lineOf = (command: Command): string =>
  command.parent ? `${lineOf(command.parent)} ${command.name()}` : command.name()

function describe(program: Command, { output }: Cli, version: string): void {
  program
    .description('agent-engine at the command line: runs, permissions, flows and plans')
    .version(version, '-V, --version')
    .option('--url <url>', 'the address of the API')
    .option('--profile <name>', 'the profile to use')
    .configureHelp({
      showGlobalOptions: true,
      // The options of a command that has subcommands, such as `ae approvals`, do not apply to the subcommands.
      visibleGlobalOptions: (command) => (command === program ? [] : [...program.options]),
      helpWidth: Math.min(output.columns(), 100),
    })
    .configureOutput({
      writeOut: (text) => output.out(text),
      writeErr: (text) => output.err(text),
      outputError: (text, write) => write(plain(text)), // The message repeats what was typed.
    })
    .exitOverride()
    .addHelpText('after', `\n${EXIT_CODE_HELP}\n\n${ENVIRONMENT_HELP}`)
}

async function fail(cause: unknown, { cli, named }: { cli: Cli; named: Command }): Promise<ExitCode> {
  // Commander has already printed the help or the error.
  if (cause instanceof CommanderError) return failUsage(cause, { cli, named })
  const wrongUrl = cause instanceof ApiError ? await findWrongUrl(cli) : undefined
  if (wrongUrl) return fail(wrongUrl, { cli, named })
  const { output } = cli
  const code = exitCodeOf(cause)
  const isUnknown = code === undefined && !isSystemError(cause)
  const url = isUnknown || code === EXIT.serverAway ? (await cli.target()).url : ''
  const { message, hints } = explain(isUnknown ? unexpectedAnswer(cause) : cause, url)
  if (code === EXIT.notFound && hints.length === 0) hints.push(...listOf(named))
  const { style } = output
  output.err(`${style.red(style.symbols.bad)} ${plain(message)}\n${hints.map((hint) => `  ${plain(hint)}\n`).join('')}`)
  return code ?? (isUnknown ? EXIT.serverAway : EXIT.usage)
}

function failUsage(
  { code, exitCode }: CommanderError,
  { cli: { output }, named }: { cli: Cli; named: Command },
): ExitCode {
  if (exitCode === 0) return EXIT.ok
  if (code !== 'commander.help') output.err(`  \`${lineOf(named)} --help\` says what it takes.\n`)
  return EXIT.usage
}

/** The command that lists the kind of things of which one was not found. */
function listOf({ parent }: Command): string[] {
  const list = parent?.parent ? parent.commands.find((each) => each.name() === 'ls') : undefined
  return list ? [`\`${lineOf(list)}\` lists what there is.`] : []
}

/** The given address, if the error comes from a missing base path. */
async function findWrongUrl(cli: Cli): Promise<CliError | undefined> {
  const { url } = await cli.target()
  const { withBasePath } = await import('./connect/connect.ts')
  const right = await withBasePath(url)
  if (right === undefined) return undefined
  const hint = `Use ${right} for --url, AE_URL or the profile.`
  return new CliError(EXIT.settings, `${url} is the address of a server, and not of its API`, hint)
}

/** An answer that does not have the format of the API makes a command throw. A stack trace would not help the user. */
const unexpectedAnswer = (cause: unknown): ConnectionFailed =>
  new ConnectionFailed(
    `its answer is not one of this version (${cause instanceof Error ? cause.message : String(cause)})`,
  )

/** For a missing file and similar errors, Node's message explains the cause. */
const isSystemError = (cause: unknown): boolean =>
  cause instanceof Error && typeof (cause as NodeJS.ErrnoException).syscall === 'string'

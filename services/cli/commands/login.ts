import { text as textOf } from 'node:stream/consumers'
import type { Command } from 'commander'
import { AgentEngine } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { issuerOfConsole, signIn } from '../connect/device-flow.ts'
import { type Profile, writeProfiles } from '../connect/profiles.ts'
import { usageError } from '../exit-codes.ts'
import { askSecret } from '../follow/ask-line.ts'
import { isInteractive } from '../io.ts'
import { plain, plainLine } from '../text/plain.ts'

type LoginOptions = { issuer?: string; clientId?: string; audience?: string; name?: string }

export function defineLogin(command: Command, cli: Cli): void {
  command
    .option('--issuer <url>', 'sign in with the device flow of this issuer')
    .option('--client-id <id>', "the issuer's id of this program")
    .option('--audience <name>', 'the audience of the token')
    .option('--name <name>', 'the profile to store it in')
    .addHelpText(
      'after',
      '\nWithout --issuer that of the server is used on a terminal, where it has the device flow. Otherwise the token is asked for, or read from stdin.\nIt is stored in a file for you only, and is never an argument.',
    )
    .action((options: LoginOptions) => login(options, cli))
}

/** The token is tried before it is stored. */
async function login(options: LoginOptions, cli: Cli): Promise<void> {
  const { io, output } = cli
  const { url, profileName, profiles } = await cli.target()
  const signedIn: Profile = { url, ...((await byDevice(options, url, cli)) ?? { token: await readToken(cli) }) }
  const { tenant, subject } = await new AgentEngine({ url, token: signedIn.token }).me()
  const name = options.name ?? profileName
  await writeProfiles(io.env, { current: name, profiles: { ...profiles.profiles, [name]: signedIn } })
  output.err(`signed in at ${url} as ${plainLine(`${subject} of ${tenant}`)} (profile ${plainLine(name)})\n`)
}

/**
 * Signs in with the issuer of `--issuer`, or, on a terminal, with the issuer of the server's console. Returns `undefined` if there is
 * neither: then the user must give a token.
 */
async function byDevice({ issuer, clientId, audience }: LoginOptions, url: string, { io, output }: Cli) {
  if (issuer !== undefined && clientId === undefined) throw usageError('--issuer needs --client-id')
  const named = issuer !== undefined && clientId !== undefined ? { issuer, clientId, audience } : undefined
  const known = named ?? (isInteractive(io) ? await issuerOfConsole(url) : undefined)
  if (!known) return undefined
  const show = ({ address, userCode }: { address: string; userCode: string }) =>
    output.err(`Open ${plain(address)}\nand enter the code ${plain(userCode)}\n`)
  const signedIn = await signIn({ ...known, show })
  if (!signedIn) output.err('the issuer has no device flow for this client: give a token\n')
  return signedIn
}

async function readToken({ io }: Cli): Promise<string> {
  const text = isInteractive(io) ? await askSecret(io, 'token: ') : await textOf(io.stdin)
  const token = text?.trim() ?? ''
  if (/^\S+$/.test(token)) return token
  if (token !== '') throw usageError('the token has blanks or several lines')
  throw usageError(
    'there is no token',
    'On a terminal it is asked for; otherwise it is read from stdin: ae login < FILE',
  )
}

export function defineLogout(command: Command, cli: Cli): void {
  command.action(async () => {
    const { profileName, profile, profiles } = await cli.target()
    if (!profile) return cli.output.err('there is no profile: nothing to forget\n')
    const { token: _token, renewal: _renewal, ...rest } = profile
    await writeProfiles(cli.io.env, { ...profiles, profiles: { ...profiles.profiles, [profileName]: rest } })
    cli.output.err(
      `the token of the profile ${plainLine(profileName)} is forgotten here; it stays valid until it ends\n`,
    )
  })
}

export function defineWhoami(command: Command, cli: Cli): void {
  command.option('--json', 'print the answer of GET /me').action(async ({ json }: { json?: boolean }) => {
    const [{ url, profileName, profile }, engine] = [await cli.target(), await cli.engine()]
    const me = await engine.me()
    if (json) return cli.output.out(`${JSON.stringify(me, null, 2)}\n`)
    const rows = [
      ['subject', me.subject],
      ['tenant', me.tenant],
      ['scopes', me.scopes.join(' ')],
      ['server', `${url} (version ${me.version})`],
      ['model', me.model ?? 'none'],
      ['profile', profile ? profileName : 'none'],
    ]
    cli.output.out(rows.map(([name = '', value = '']) => `${name.padEnd(9)}${plainLine(value)}\n`).join(''))
  })
}

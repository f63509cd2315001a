import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { DEFAULT_PROFILE, type Profile, profilesFile, readProfiles, writeProfiles } from '../connect/profiles.ts'
import { DEFAULT_URL } from '../connect/target.ts'
import { CliError, EXIT, usageError } from '../exit-codes.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { plainLine } from '../text/plain.ts'

export function defineProfile(command: Command, cli: Cli): void {
  addListOptions(command).action((options: ListOptions) => list(options, cli))
  command
    .command('add <name> <url>')
    .description('add a server, or change its address, and use it')
    .action((name: string, url: string) => add(name, url, cli))
  command
    .command('use <name>')
    .description('use this profile from now on')
    .action((name: string) => change(name, cli, (profiles) => ({ current: name, profiles })))
  command
    .command('rm <name>')
    .description('forget a profile and its token')
    .action((name: string) =>
      change(name, cli, ({ [name]: _removed, ...profiles }, current) => ({
        current: current === name ? DEFAULT_PROFILE : current,
        profiles,
      })),
    )
}

type Named = Record<string, Profile>

async function list(options: ListOptions, cli: Cli): Promise<void> {
  const { current, profiles } = await readProfiles(cli.io.env)
  const rows = Object.entries(profiles).map(([name, { url, token }]) => ({
    name,
    url,
    is_current: name === current,
    has_token: token !== undefined,
  }))
  printList(rows, options, cli, {
    id: ({ name }) => name,
    nothing: `there is no profile in ${profilesFile(cli.io.env)}: the server is ${DEFAULT_URL}`,
    columns: [
      { title: 'NAME', value: ({ name, is_current }) => `${is_current ? '*' : ' '} ${plainLine(name)}` },
      { title: 'URL', value: ({ url }) => plainLine(url), canShrink: true },
      { title: 'TOKEN', value: ({ has_token }) => (has_token ? 'stored' : 'none') },
    ],
  })
}

/** A token belongs to its server, so a new address drops it. */
async function add(name: string, url: string, { io }: Cli): Promise<void> {
  if (!/^[\w.-]{1,64}$/.test(name)) throw usageError('a name has 1 to 64 of the characters A-Z a-z 0-9 . _ -')
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw usageError(`${plainLine(url)} is not an address`, `as ${DEFAULT_URL}`)
  const { profiles } = await readProfiles(io.env)
  const profile = profiles[name]?.url === url ? profiles[name] : { url }
  await writeProfiles(io.env, { current: name, profiles: { ...profiles, [name]: profile } })
}

async function change(
  name: string,
  { io }: Cli,
  to: (profiles: Named, current: string) => { current: string; profiles: Named },
): Promise<void> {
  const { current, profiles } = await readProfiles(io.env)
  if (!Object.hasOwn(profiles, name)) throw new CliError(EXIT.notFound, `there is no profile ${plainLine(name)}`)
  await writeProfiles(io.env, to(profiles, current))
}

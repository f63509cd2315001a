import { CliError, EXIT } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { type Profile, type Profiles, readProfiles } from './profiles.ts'

/** The default: a standalone server on this machine. */
export const DEFAULT_URL = 'http://127.0.0.1:8080/v1'

/** The server that gets the requests of the commands, and the token for it. */
export type Target = { url: string; profileName: string; profile: Profile | undefined; profiles: Profiles }

export type Choice = { url?: string | undefined; profile?: string | undefined }

/** The server that options, environment or profile name, in this order. */
export async function findTarget({ env }: Io, choice: Choice): Promise<Target> {
  const profiles = await readProfiles(env)
  const profileName = choice.profile ?? (env['AE_PROFILE'] || profiles.current)
  const profile = profiles.profiles[profileName]
  if (choice.profile !== undefined && !profile)
    throw new CliError(EXIT.settings, `there is no profile ${choice.profile}`, '`ae profile` lists them.')
  const url = choice.url ?? (env['AE_URL'] || profile?.url || DEFAULT_URL)
  const parsed = URL.parse(url)
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:')
    throw new CliError(
      EXIT.settings,
      `${url} is not the address of a server`,
      `It begins with http:// or https://, as ${DEFAULT_URL}.`,
    )
  return { url, profileName, profile, profiles }
}

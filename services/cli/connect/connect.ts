import { AgentEngine, type EngineOptions } from '../../../shared/client/client.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { renewedToken } from './device-flow.ts'
import { type Profile, type Profiles, readProfiles, writeProfiles } from './profiles.ts'

/** The standalone form on this machine. */
export const DEFAULT_URL = 'http://127.0.0.1:8080/v1'

/** Where the commands go, and as whom. */
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

/** A client of the target. */
export const connect = (io: Io, target: Target): AgentEngine => new AgentEngine(accessTo(io, target))

/** The address of the target, and the token for it. A token of a profile is sent to the profile's own server only. */
export function accessTo(
  { env }: Io,
  { url, profileName, profile, profiles }: Target,
): Pick<EngineOptions, 'url' | 'token'> {
  if (env['AE_TOKEN']) return { url, token: env['AE_TOKEN'] }
  if (!profile || profile.url !== url || profile.token === undefined) return { url }
  let current = profile
  const token = async (refused?: string) => {
    const renewed = await renewedToken(current, refused)
    if (renewed === current) return current.token
    current = renewed
    await writeProfiles(env, { ...profiles, profiles: { ...profiles.profiles, [profileName]: renewed } })
    return renewed.token
  }
  return { url, token }
}

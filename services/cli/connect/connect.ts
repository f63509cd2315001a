import { AgentEngine, type EngineOptions } from '../../../shared/client/client.ts'
import type { Io } from '../io.ts'
import { renewedToken } from './device-flow.ts'
import { writeProfiles } from './profiles.ts'
import type { Target } from './target.ts'

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

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

const BASE_PATHS = ['/v1', '/api/v1']
/** The command has failed already: a person waits for the reason. */
const MOST_MS = 2_000

/** The address of the API, if `url` is only that of its server. `undefined` if `url` has a base path, or is another server. */
export async function withBasePath(url: string): Promise<string | undefined> {
  const server = url.replace(/\/+$/, '')
  if (BASE_PATHS.some((path) => server.endsWith(path))) return undefined
  const found = await Promise.all(BASE_PATHS.map((path) => isApi(server + path)))
  const index = found.indexOf(true)
  return index < 0 ? undefined : server + BASE_PATHS[index]
}

/** Whether an agent-engine answers at the address. A server that answers every path with 200 does not send this JSON. */
async function isApi(url: string): Promise<boolean> {
  const { raw } = new AgentEngine({ url, retry: { attempts: 1 } })
  const health = await raw.get('/health', { timeoutMs: MOST_MS }).catch(() => undefined)
  return health?.status !== undefined
}

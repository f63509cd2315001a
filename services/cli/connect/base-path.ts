import { AgentEngine } from '../../../shared/client/client.ts'

const BASE_PATHS = ['/v1', '/api/v1']
/** The command has failed already: a person waits for the reason. */
const MOST_MS = 2_000

/** The address of the API, where `url` is that of its server alone. `undefined` for one with a base path, or of another server. */
export async function withBasePath(url: string): Promise<string | undefined> {
  const server = url.replace(/\/+$/, '')
  if (BASE_PATHS.some((path) => server.endsWith(path))) return undefined
  const found = await Promise.all(BASE_PATHS.map((path) => isApi(server + path)))
  const index = found.indexOf(true)
  return index < 0 ? undefined : server + BASE_PATHS[index]
}

/** Whether an agent-engine answers there: what answers everything has no health of this shape. */
async function isApi(url: string): Promise<boolean> {
  const { raw } = new AgentEngine({ url, retry: { attempts: 1 } })
  const health = await raw.get('/health', { timeoutMs: MOST_MS }).catch(() => undefined)
  return health?.status !== undefined
}

import { unescape } from 'node:querystring'
import { PROVIDERS } from './model.ts'
import {
  allowedHost,
  flag,
  hostName,
  httpUrl,
  integer,
  isObject,
  issuer,
  jsonMap,
  listOf,
  masterKey,
  matching,
  modelName,
  oneOf,
  origin,
  type Parse,
  path,
  port,
  seconds,
  token,
  trustProxy,
} from './values.ts'

/** `standalone` is one process on one machine, `cluster` is several over Redis and MongoDB. */
export type Form = 'standalone' | 'cluster'

export type Field<T> = {
  name: string
  parse: Parse<T>
  /** The default as D1.3 writes it; it goes through the same parser. */
  fallback?: string | Record<Form, string>
  /** Of a secret, the parts that must not reach a log or a message. */
  secrets?: (raw: string) => string[]
}

/** US dollars per million tokens (D1.3). */
export type ModelPrice = { input: number; output: number; cache_read?: number; cache_write?: number }

const COUNT = 1_000_000

const headerNames = listOf(matching(/^[\w!#$%&'*+.^`|~-]+$/, 'a header name'))
const audience = matching(/^[^\s\p{Cc}]{1,512}$/u, 'the audience of tokens for this service, without blanks')
const claimName = matching(/^[\x21-\x7e]{1,128}$/, 'the name of a claim')
const redisUrl = matching(/^rediss?:\/\/\S+$/, 'an address such as redis://127.0.0.1:6379')
const mongodbUrl = matching(/^mongodb(\+srv)?:\/\/\S+$/, 'an address such as mongodb://127.0.0.1:27017')
const mongodbName = matching(/^[A-Za-z0-9_-]{1,63}$/, 'letters, digits, _ and -')
const prices = jsonMap(isPrice, 'a JSON object: model -> {"input", "output", "cache_read"?, "cache_write"?}, all >= 0')
const toolPolicies = jsonMap(isOneOf('allow', 'ask', 'deny'), 'a JSON object: tool -> "allow", "ask" or "deny"')
const planPolicies = jsonMap(
  isOneOf('allow', 'deny'),
  'a JSON object: tool -> "allow" or "deny" (a queued step cannot ask)',
)

/**
 * The names of D1.3 with their defaults; those of MODEL stand in `targetFields`. What a later version will use is
 * checked already and marked "later".
 */
export const FIELDS = {
  host: field('HOST', hostName, { standalone: '127.0.0.1', cluster: '0.0.0.0' }),
  port: field('PORT', port, '8080'),
  opsPort: field('OPS_PORT', port, '9090'),
  opsToken: secret('OPS_TOKEN', token),
  trustProxy: field('TRUST_PROXY', trustProxy, 'false'),
  allowedHosts: field('ALLOWED_HOSTS', listOf(allowedHost), ''),
  corsOrigins: field('CORS_ORIGINS', listOf(origin), ''),
  corsAllowHeaders: field('CORS_ALLOW_HEADERS', headerNames, ''),
  corsExposeHeaders: field('CORS_EXPOSE_HEADERS', headerNames, ''),
  rateLimitRpm: field('RATE_LIMIT_RPM', integer(0, COUNT), '60'),
  rateLimitStore: field('RATE_LIMIT_STORE', oneOf('memory', 'redis'), 'memory'),
  hasExplorer: field('API_EXPLORER', flag, { standalone: 'true', cluster: 'false' }),
  keepaliveMs: field('KEEPALIVE_SECS', seconds(1), '15'),
  drainMs: field('DRAIN_SECS', seconds(0), '30'),
  logLevel: field('LOG_LEVEL', oneOf('error', 'warn', 'info', 'debug'), 'info'),

  authMode: field('AUTH_MODE', oneOf('legacy', 'soft', 'enforced'), 'legacy'),
  apiToken: secret('API_TOKEN', token),
  oidcIssuer: optional('OIDC_ISSUER', issuer),
  oidcAudience: optional('OIDC_AUDIENCE', audience),
  oidcJwksUri: optional('OIDC_JWKS_URI', httpUrl),
  tenantClaim: field('TENANT_CLAIM', claimName, 'tenant_id'),

  dataDir: field('DATA_DIR', path, './data'),
  workspaceDir: optional('WORKSPACE_DIR', path), // DATA_DIR/workspaces
  redisUrl: secret('REDIS_URL', redisUrl, urlPassword),
  mongodbUrl: secret('MONGODB_URL', mongodbUrl, urlPassword), // later
  mongodbDb: field('MONGODB_DB', mongodbName, 'agent_engine'), // later
  masterKey: secret('MASTER_KEY', masterKey), // later
  masterKeysPrevious: secret('MASTER_KEY_PREVIOUS', listOf(masterKey), (raw) => raw.split(',')), // later

  modelPrices: field('MODEL_PRICES', prices, '{}'),
  allowsPrivateUrls: field('ALLOW_PRIVATE_URLS', flag, { standalone: 'true', cluster: 'false' }),

  maxTurns: field('MAX_TURNS', integer(1, 200), '32'),
  permissionTimeoutMs: field('PERMISSION_TIMEOUT_SECS', seconds(1), '300'),
  toolPermissions: field('TOOL_PERMISSIONS', toolPolicies, '{}'),
  isBashEnabled: field('ENABLE_BASH', flag, 'false'),
  skillsDir: optional('SKILLS_DIR', path),
  mcpConfig: optional('MCP_CONFIG', path),
  sessionsPerWorker: field('SESSIONS_PER_WORKER', integer(1, COUNT), '10000'),
  sessionIdleMs: field('SESSION_IDLE_SECS', seconds(1), '3600'),
  runsPerWorker: field('RUNS_PER_WORKER', integer(1, COUNT), '256'),
  runResumeMs: field('RUN_RESUME_SECS', seconds(0), '30'),

  customerEngines: field('CUSTOMER_ENGINES', integer(1, COUNT), '256'), // later
  customerIdleMs: field('CUSTOMER_IDLE_SECS', seconds(-1_000_000), '1800'), // later; negative: never idle
  customerHistoryEntries: field('CUSTOMER_HISTORY_ENTRIES', integer(0, 10_000), '10'), // later
  customerHistoryChars: field('CUSTOMER_HISTORY_CHARS', integer(0, COUNT), '4000'), // later
  hasPlanQueue: field('PLAN_QUEUE', flag, 'true'), // later
  planPermissions: field('PLAN_PERMISSIONS', planPolicies, '{}'), // later
  hasDispatchStore: field('DISPATCH_STORE', flag, 'true'), // later
}

/** The default model's rows (`MODEL`, …) or those of the server-wide fallback (`FALLBACK_MODEL`, …). */
export const targetFields = (prefix: 'MODEL' | 'FALLBACK_MODEL') => ({
  model: optional(prefix, modelName),
  provider: optional(`${prefix}_PROVIDER`, oneOf(...PROVIDERS)),
  baseUrl: optional(`${prefix}_BASE_URL`, httpUrl),
  apiKey: secret(`${prefix}_API_KEY`, token),
})

/** A table's values, each with its parser's type. */
export type ValuesOf<Table> = { [K in keyof Table]: Table[K] extends Field<infer T> ? T : never }

function field<T>(name: string, parse: Parse<T>, fallback: string | Record<Form, string>): Field<T> {
  return { name, parse, fallback }
}

function optional<T>(name: string, parse: Parse<T>): Field<T | undefined> {
  return { name, parse }
}

function secret<T>(name: string, parse: Parse<T>, secrets = (raw: string) => [raw]): Field<T | undefined> {
  return { name, parse, secrets }
}

function isPrice(value: unknown): value is ModelPrice {
  if (!isObject(value) || !('input' in value) || !('output' in value)) return false
  return Object.entries(value).every(([name, dollars]) => PRICE_NAMES.includes(name) && isAmount(dollars))
}

const PRICE_NAMES = ['input', 'output', 'cache_read', 'cache_write']

const isAmount = (value: unknown) => typeof value === 'number' && value >= 0 && Number.isFinite(value)

function isOneOf<const T extends string>(...names: T[]) {
  return (value: unknown): value is T => names.some((name) => name === value)
}

/** The password of `scheme://user:password@host`, as it is written and as it is meant. */
function urlPassword(raw: string): string[] {
  const written = /^[a-z+]+:\/\/[^:@/]*:([^@]+)@/.exec(raw)?.[1]
  return written === undefined ? [] : [written, unescape(written)]
}

import { CAPACITY_FIELDS } from './capacity-fields.ts'
import { DIALECT_NAMES, dialects } from './dialects.ts'
import { type Field, type Form, field, optional, or, secret, urlPassword, type ValuesOf } from './field.ts'
import { modelPrices, toolPolicies } from './json-values.ts'
import {
  allowedHost,
  baseUrl,
  clusterName,
  flag,
  hostName,
  httpUrl,
  integer,
  issuer,
  listOf,
  masterKey,
  matching,
  megabytes,
  modelName,
  oneOf,
  origin,
  path,
  port,
  redisNodes,
  seconds,
  sentinels,
  token,
  trustProxy,
} from './values.ts'
import { WORKSPACE_FIELDS } from './workspace-fields.ts'

export type { Field, Form, ValuesOf }

const COUNT = 1_000_000

const headerNames = listOf(matching(/^[\w!#$%&'*+.^`|~-]+$/, 'a header name'))
const audience = matching(/^[^\s\p{Cc}]{1,512}$/u, 'the audience of tokens for this service, without blanks')
const claimName = matching(/^[\x21-\x7e]{1,128}$/, 'the name of a claim')
const scope = matching(/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/, 'a scope without blanks, such as admin')
const scopes = matching(
  /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/,
  'scopes with one blank between two, such as openid offline_access',
)
const clientId = matching(/^[\x20-\x7e]{1,256}$/, 'the id of a client of the issuer')
const proxyUrl = matching(/^https?:\/\/[^\s/]+\/?$/, 'an address such as http://proxy:3128')
const hostList = matching(/^[\x20-\x7e]{1,4096}$/, 'host names, comma-separated')
const redisUrl = matching(/^rediss?:\/\/\S+$/, 'an address such as redis://127.0.0.1:6379')
const mongodbUrl = matching(/^mongodb(\+srv)?:\/\/\S+$/, 'an address such as mongodb://127.0.0.1:27017')
const mongodbName = matching(/^[A-Za-z0-9_-]{1,63}$/, 'letters, digits, _ and -')
const logLevel = oneOf('error', 'warn', 'info', 'debug')
const authMode = oneOf('legacy', 'soft', 'enforced')
const localOnly = { standalone: 'true', cluster: 'false' }

/** The settings of D1.3c that exist so far; those of the two models are in `targetFields`. */
export const FIELDS = {
  host: field(
    'HOST',
    or(hostName, { standalone: '127.0.0.1', cluster: '0.0.0.0' }),
    'Address that both listeners bind.',
  ),
  publishedAddress: field(
    'PUBLISHED_ADDRESS',
    optional(hostName),
    'Address of the machine at which a container publishes the API (default: HOST); for warnings only.',
  ),
  port: field('PORT', or(port, '8080'), 'Port of the public API; 0 takes any free port.'),
  opsPort: field('OPS_PORT', or(port, '9090'), 'Port of /livez, /readyz and /metrics; 0 takes any free port.'),
  opsToken: field('OPS_TOKEN', secret(token), 'Token that /metrics requires, as bearer token or basic-auth password.'),
  trustProxy: field(
    'TRUST_PROXY',
    or(trustProxy, 'false'),
    'Proxies whose X-Forwarded-For is used: hops or CIDR list.',
  ),
  allowedHosts: field(
    'ALLOWED_HOSTS',
    or(listOf(allowedHost), ''),
    'Host names that requests may use beside localhost, without port; /livez and /readyz ignore it.',
  ),
  corsOrigins: field('CORS_ORIGINS', or(listOf(origin), ''), 'Origins of web pages that may call the API; * for any.'),
  corsAllowHeaders: field('CORS_ALLOW_HEADERS', or(headerNames, ''), 'More request headers that web pages may send.'),
  corsExposeHeaders: field('CORS_EXPOSE_HEADERS', or(headerNames, ''), 'More answer headers that web pages may read.'),
  corsResume: field(
    'CORS_RESUME',
    or(flag, 'false'),
    'Let web pages of CORS_ORIGINS resume streams: adds the names of their headers to the lists.',
  ),
  rateLimitRpm: field('RATE_LIMIT_RPM', or(integer(0, COUNT), '60'), 'Requests per minute and client; 0 for no limit.'),
  rateLimitStore: field(
    'RATE_LIMIT_STORE',
    or(oneOf('memory', 'redis'), 'memory'),
    'Where requests are counted: `memory` per process, `redis` across all gateways.',
  ),
  hasExplorer: field('API_EXPLORER', or(flag, localOnly), 'Serve the API explorer at /docs and /openapi.json.'),
  hasConsole: field('CONSOLE', or(flag, localOnly), 'Serve the console, the pages for people, at /console.'),
  consoleUrl: field(
    'CONSOLE_URL',
    optional(baseUrl),
    'Address at which people open the console, such as https://agents.example.com/console: messages of webhooks link to its pages.',
  ),
  dialects: field(
    'DIALECTS',
    or(dialects, { standalone: DIALECT_NAMES.join(','), cluster: 'none' }),
    `Formats of other products in which the API can be used, comma-separated: ${DIALECT_NAMES.join(', ')}; \`all\` for all, \`none\` for none.`,
  ),
  consoleClientId: field(
    'CONSOLE_OIDC_CLIENT_ID',
    optional(clientId),
    'Client id of the console at OIDC_ISSUER: sign-in by code with PKCE; without it people paste a token.',
  ),
  consoleScope: field(
    'CONSOLE_OIDC_SCOPE',
    or(scopes, 'openid'),
    'Scopes that the console asks OIDC_ISSUER for, with blanks between them.',
  ),
  consoleOrigins: field(
    'CONSOLE_OIDC_ORIGINS',
    or(listOf(origin), ''),
    "Origins of the issuer's endpoints that are not at OIDC_ISSUER itself; the console may connect to them.",
  ),
  keepaliveMs: field('KEEPALIVE_SECS', or(seconds(1), '15'), 'Seconds between keepalive comments on a stream.'),
  drainMs: field('DRAIN_SECS', or(seconds(0), '30'), 'Seconds that running work has to end after SIGTERM.'),
  logLevel: field('LOG_LEVEL', or(logLevel, 'info'), 'Least severe level that is logged: error, warn, info, debug.'),

  authMode: field(
    'AUTH_MODE',
    or(authMode, 'legacy'),
    'Use of OIDC tokens: `legacy` and `enforced` require one when OIDC_ISSUER is set, `soft` also accepts none.',
  ),
  apiToken: field('API_TOKEN', secret(token), 'Bearer token that every request must carry; standalone form only.'),
  oidcIssuer: field('OIDC_ISSUER', optional(issuer), 'OIDC issuer of access tokens, exactly as in their `iss` claim.'),
  oidcAudience: field('OIDC_AUDIENCE', optional(audience), 'Audience that access tokens must name.'),
  oidcJwksUri: field('OIDC_JWKS_URI', optional(httpUrl), "Address of the issuer's keys; by default from discovery."),
  tenantClaim: field('TENANT_CLAIM', or(claimName, 'tenant_id'), 'Claim of the access token that names the tenant.'),

  adminScope: field(
    'ADMIN_SCOPE',
    optional(scope),
    'Scope that an access token needs to change the limits of its tenant; without it every token may, up to TENANT_LIMITS.',
  ),

  scopeClaim: field(
    'SCOPE_CLAIM',
    optional(claimName),
    'Claim of the access token that lists what it may be used for: read, run, approve, flows, admin; a token without it may do everything.',
  ),

  dataDir: field('DATA_DIR', or(path, './data'), 'Folder of the database and of everything else that is kept.'),
  ...WORKSPACE_FIELDS,
  redisUrl: field('REDIS_URL', secret(redisUrl, urlPassword), 'Redis that connects the processes of a cluster.'),
  redisSentinels: field('REDIS_SENTINELS', optional(sentinels), 'Sentinels that name the Redis: host:port,…/name.'),
  redisCluster: field(
    'REDIS_CLUSTER',
    optional(redisNodes),
    'Nodes of a Redis Cluster, in place of one Redis: host:port,….',
  ),
  clusterName: field('CLUSTER_NAME', or(clusterName, 'ae'), 'Prefix of all Redis keys and channels of a cluster.'),
  mongodbUrl: field(
    'MONGODB_URL',
    secret(mongodbUrl, urlPassword),
    'MongoDB of a cluster; without it nothing is kept.',
  ),
  mongodbDb: field('MONGODB_DB', or(mongodbName, 'agent_engine'), 'Name of the database in MongoDB.'),
  masterKey: field(
    'MASTER_KEY',
    secret(masterKey),
    'Key that encrypts stored secrets: 32 bytes in base64. Without it the standalone form keeps one in DATA_DIR/master.key.',
  ),
  masterKeysPrevious: field(
    'MASTER_KEY_PREVIOUS',
    secret(listOf(masterKey), (raw) => raw.split(',')),
    'Former master keys, comma-separated, for as long as secrets are encrypted with them.',
  ),

  modelPrices: field(
    'MODEL_PRICES',
    or(modelPrices, '{}'),
    'Prices that replace the built-in ones: {"<model>": {"input", "output", "cache_read"?, "cache_write"?}}, ' +
      'in US dollars per million tokens.',
  ),
  smallModel: field(
    'SMALL_MODEL',
    optional(modelName),
    "Id of a model at the default model's provider for sub-agents and summaries; without it they use the run's own.",
  ),
  httpsProxy: field(
    'HTTPS_PROXY',
    secret(proxyUrl, urlPassword),
    "Proxy for the server's own providers; tenants' providers are called directly.",
  ),
  noProxy: field('NO_PROXY', optional(hostList), 'Hosts that are called without HTTPS_PROXY, comma-separated.'),
  allowsPrivateUrls: field(
    'ALLOW_PRIVATE_URLS',
    or(flag, localOnly),
    'Let WebFetch and provider addresses of tenants reach private, loopback and link-local addresses.',
  ),

  maxTurns: field('MAX_TURNS', or(integer(1, 200), '32'), 'Turns of a run whose request does not set max_turns.'),
  permissionTimeoutMs: field(
    'PERMISSION_TIMEOUT_SECS',
    or(seconds(1), '300'),
    'Seconds that a tool call waits for its permission before it is denied.',
  ),
  clientToolTimeoutMs: field(
    'CLIENT_TOOL_TIMEOUT_SECS',
    or(seconds(1), '300'),
    'Seconds that a run waits for its client to make a call of its own tools.',
  ),
  toolPermissions: field(
    'TOOL_PERMISSIONS',
    or(toolPolicies, '{}'),
    'Policies that replace the built-in ones: {"<rule>": "allow", "ask", "client" or "deny"}; with `client` the program that has started the run makes the call itself; a rule is `Write`, `mcp__github__*` or `Bash(npm test)`, and the longest that matches wins. A rule for Bash compares the words of the command: to allow `git *`, `npm *` or an interpreter allows every command, since they start others. A denial also makes a line ask that may run what it names, as behind `sudo`, `env` or `xargs`, in variables and quotes or by `find -delete`, and such a line is not accepted as a changed input. What scripts and programs do by themselves no rule sees.',
  ),
  planPermissions: field(
    'PLAN_PERMISSIONS',
    or(toolPolicies, '{}'),
    'Policies for flows and queued plans, in which nobody can be asked: as TOOL_PERMISSIONS, where `ask` and `client` deny; without an entry Write and Edit are allowed.',
  ),
  isBashEnabled: field('ENABLE_BASH', or(flag, 'false'), 'Offer the Bash tool.'),
  flowsDir: field('FLOWS_DIR', optional(path), 'Folder of flow definitions in YAML, loaded as drafts at start.'),
  skillsDir: field('SKILLS_DIR', optional(path), 'Folder of Agent Skills: NAME/SKILL.md with front matter.'),
  mcpConfig: field(
    'MCP_CONFIG',
    optional(path),
    'JSON file of MCP servers: {"mcpServers": {...}}; its texts may hold ${VAR} and ${VAR:-default}.',
  ),
  mcpStartMs: field(
    'MCP_START_SECS',
    or(seconds(1), '30'),
    'Seconds that an MCP server may take to start and list its tools; a slower one is left out and tried again.',
  ),
  mcpProcesses: field(
    'MCP_PROCESSES',
    or(integer(1, 10_000), '64'),
    'MCP servers that sessions and tenants of one process have for themselves at a time; half of them per tenant while OIDC is on.',
  ),
  mcpIdleMs: field(
    'MCP_IDLE_SECS',
    or(seconds(1), '1800'),
    'Seconds after which an MCP server that a session or tenant has for itself is ended when nobody has called it.',
  ),
  mcpMemoryBytes: field(
    'MCP_MEMORY_MB',
    or(megabytes(1, 1_000_000), '2048'),
    'Memory that an MCP server over stdio may take with all that it starts, before it is ended (Linux only).',
  ),
  runResumeMs: field(
    'RUN_RESUME_SECS',
    or(seconds(0), '30'),
    'Seconds that a run continues, and its events are kept, after its client has left.',
  ),

  ...CAPACITY_FIELDS,
  hasDispatchStore: field(
    'DISPATCH_STORE',
    or(flag, 'true'),
    'Keep the history of flow runs; `false` keeps a record only as long as the run needs it.',
  ),
  hasPlanQueue: field('PLAN_QUEUE', or(flag, 'true'), 'Queue approved plans; `false` switches the queue off.'),
}

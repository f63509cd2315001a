import { readFile } from 'node:fs/promises'
import { invalidRequest } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import type { Env } from '../../../platform/config/model.ts'
import { expandVariables } from './variables.ts'

/** One connection to a server, or one process of it, serves one session, plan or other run (`session`), one tenant, or all tenants (D40). */
export type Scope = (typeof SCOPES)[number]

/** `secrets` are values that must not appear in a log line or an answer. `isTrusted`: the server's hints about its tools are believed. */
type Named = {
  name: string
  isTrusted: boolean
  secrets: string[]
  scope?: Scope
  /** The only version of the protocol that is used with the server. */
  protocolVersion?: string
  /** The longest silence within a call. */
  timeoutMs?: number
  disabledTools?: string[]
}
export type StdioServerConfig = Named & {
  command: string
  args: string[]
  cwd: string | undefined
  env: Record<string, string>
}
export type HttpServerConfig = Named & { url: URL; headers: Record<string, string> }
export type McpServerConfig = StdioServerConfig | HttpServerConfig

/** The longest answer that is read, by transport. A longer answer fails only its own call. */
export const MAX_ANSWER_BYTES = { stdio: 10 * 1024 * 1024, http: 16 * 1024 * 1024 }

/** The scope in a server's entry, or `byDefault` for a server over stdio. */
export const scopeOf = ({ scope, ...server }: McpServerConfig, byDefault: Scope): Scope =>
  scope ?? ('command' in server ? byDefault : 'shared')

/** Without OIDC there is only one tenant. */
export const defaultScopeOf = ({ oidcIssuer }: { oidcIssuer?: unknown }): Scope =>
  oidcIssuer === undefined ? 'shared' : 'tenant'

const SCOPES = ['session', 'tenant', 'shared'] as const
const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
const MAX_SERVERS = 64
const HTTP_TYPES = ['http', 'streamable-http', 'streamableHttp']

/**
 * Reads an MCP_CONFIG file (D1.3): `{"mcpServers": {"<name>": {command, args?, env?, cwd?} | {url, headers?}}}`, both also with the fields of
 * `COMMON`. Servers with `"disabled": true` or `"enabled": false` are left out, and `onUnknown` gets a sentence for the log that names each further
 * field. Each text may hold variables of `env`. Throws `invalid_request` that names the file and every problem in it.
 */
export async function readMcpConfig(
  file: string,
  env: Env,
  onUnknown: (problem: string) => void = () => {},
): Promise<McpServerConfig[]> {
  const root = parse(file, await contentOf(file))
  const servers = isJsonObject(root) ? root['mcpServers'] : undefined
  if (!isJsonObject(servers)) throw configError(file, 'it must be an object with the object "mcpServers" in it')
  if (Object.keys(servers).length > MAX_SERVERS) throw configError(file, `it names more than ${MAX_SERVERS} servers`)
  const entries = Object.entries(servers).filter(([, entry]) => !isSwitchedOff(entry))
  const expanded = entries.map(([name, entry]) => ({ name, ...expandVariables(entry, env) }))
  const problems = expanded.flatMap(({ name, entry, problems: unset }) =>
    [...unset, ...problemsOf(entry)].map((text) => `mcpServers.${name}${text}`),
  )
  if (problems.length > 0) throw configError(file, problems.join('; '))
  for (const [name, entry] of entries) {
    const unknown = Object.keys(entry as object).filter((field) => !FIELDS.includes(field))
    if (unknown.length > 0)
      onUnknown(
        `MCP_CONFIG: these fields of the server ${name} are not known and have no effect: ${unknown.join(', ')}`,
      )
  }
  return expanded.map(({ name, entry, secrets }) => toServer(name, secrets, entry as Entry))
}

const isSwitchedOff = (entry: unknown): boolean =>
  isJsonObject(entry) && (entry['disabled'] === true || entry['enabled'] === false)

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw configError(
      file,
      `it cannot be read (${cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'})`,
    )
  }
}

function parse(file: string, content: string): unknown {
  try {
    return JSON.parse(content)
  } catch (cause) {
    // Only the position is shown: the rest of the message quotes the file, which may contain secrets.
    const [place = ''] = / \(line \d+ column \d+\)/.exec(String(cause)) ?? []
    throw configError(file, `it is not valid JSON${place}`)
  }
}

const configError = (file: string, text: string) => invalidRequest(`MCP_CONFIG ${file}: ${text}.`)

type Entry = {
  type?: string
  command?: string
  args?: string[]
  cwd?: string
  env?: Record<string, string>
  url?: string
  headers?: Record<string, string>
  trusted?: boolean
  scope?: Scope
  protocolVersion?: string
  timeout?: number
  disabledTools?: string[]
}

/** The fields of every entry. */
const COMMON = ['type', 'trusted', 'scope', 'protocolVersion', 'timeout', 'disabledTools', 'disabled', 'enabled']
const FIELDS = [...COMMON, 'command', 'args', 'cwd', 'env', 'url', 'headers']

/** Some clients use seconds, others milliseconds. Nobody means less than a second, so smaller numbers are seconds. */
const MIN_TIMEOUT_MS = 1_000
const toMs = (timeout: number): number => (timeout < MIN_TIMEOUT_MS ? timeout * 1_000 : timeout)

function toServer(name: string, given: string[], entry: Entry): McpServerConfig {
  const { command, args = [], cwd, env = {}, url, headers = {}, trusted: isTrusted = false } = entry
  const { scope, protocolVersion, timeout, disabledTools } = entry
  const common = {
    ...{ name, isTrusted },
    ...(scope && { scope }),
    ...(protocolVersion && { protocolVersion }),
    ...(timeout && { timeoutMs: toMs(timeout) }),
    ...(disabledTools && { disabledTools }),
  }
  if (command !== undefined) return { ...common, secrets: [...given, ...Object.values(env)], command, args, cwd, env }
  const address = new URL(String(url))
  // The operator needs the host and the port to find out why the server cannot be reached.
  const hidden = given.filter((value) => !address.host.includes(value))
  return { ...common, secrets: [...hidden, ...Object.values(headers)], url: address, headers }
}

/** Lists the problems of an entry. Each text begins with the path of the field below the entry. */
function problemsOf(entry: unknown): string[] {
  if (!isJsonObject(entry)) return [' must be an object']
  const { type, command, args, cwd, env, url, headers } = entry
  if (type === 'sse') return ['.type sse is not supported: use the server by streamable HTTP']
  if ((command === undefined) === (url === undefined)) return [' must have either "command" or "url"']
  const allowedTypes = command === undefined ? HTTP_TYPES : ['stdio']
  return [
    ...problemUnless(
      type === undefined || allowedTypes.some((allowed) => allowed === type),
      `.type must be ${allowedTypes.join(' or ')}`,
    ),
    ...problemUnless(command === undefined || isText(command), '.command must be a text'),
    ...problemUnless(
      args === undefined || (Array.isArray(args) && args.every(isString)),
      '.args must be a list of texts',
    ),
    ...problemUnless(cwd === undefined || isText(cwd), '.cwd must be the path of a folder'),
    ...problemUnless(env === undefined || isTexts(env), '.env must be an object of texts'),
    ...problemUnless(url === undefined || isHttpUrl(url), '.url must be an http or https address'),
    ...problemUnless(headers === undefined || isTexts(headers), '.headers must be an object of texts'),
    ...commonProblems(entry),
  ]
}

function commonProblems({ trusted, scope, protocolVersion, timeout, disabledTools, enabled }: JsonObject): string[] {
  const isFlag = (value: unknown) => value === undefined || typeof value === 'boolean'
  const isOneOf = (value: unknown, all: readonly string[]) => value === undefined || all.some((each) => each === value)
  return [
    ...problemUnless(isFlag(trusted), '.trusted must be true or false'),
    ...problemUnless(isFlag(enabled), '.enabled must be true or false'),
    ...problemUnless(isOneOf(scope, SCOPES), `.scope must be ${SCOPES.join(', ')}`),
    ...problemUnless(isOneOf(protocolVersion, VERSIONS), `.protocolVersion must be ${VERSIONS.join(', ')}`),
    ...problemUnless(
      timeout === undefined || (typeof timeout === 'number' && timeout > 0 && timeout <= MAX_TIMEOUT_MS),
      `.timeout must be a number of milliseconds up to ${MAX_TIMEOUT_MS}`,
    ),
    ...problemUnless(
      disabledTools === undefined || (Array.isArray(disabledTools) && disabledTools.every(isString)),
      '.disabledTools must be a list of texts',
    ),
  ]
}

const MAX_TIMEOUT_MS = 600_000

const problemUnless = (isValid: boolean, text: string): string[] => (isValid ? [] : [text])
const isString = (value: unknown): value is string => typeof value === 'string' && !value.includes('\0')
const isText = (value: unknown): boolean => isString(value) && value !== ''
const isTexts = (value: unknown): boolean => isJsonObject(value) && Object.values(value).every(isString)
const isHttpUrl = (value: unknown): boolean =>
  isString(value) && ['http:', 'https:'].includes(URL.parse(value)?.protocol ?? '')

import { createHash } from 'node:crypto'
import { MCP_PREFIX } from '../usable-tools.ts'

const MAX_CHARS = 64
/** With a longer beginning, the cut name of a tool would not hold all of it. */
const MAX_PREFIX_CHARS = 40

/**
 * Returns a function that names the tools of these servers: `mcp__<server>__<tool>` in the characters and the length that every model
 * API accepts (`[A-Za-z0-9_-]{1,64}`), no name twice. No server can have a name that another one's tool has, or would have while that
 * server is down: a policy is given to a name. The same tool always gets the same name.
 */
export function createToolNames(servers: readonly string[]): (server: string, tool: string) => string {
  const prefixes = prefixesOf(servers)
  const taken = new Set<string>()
  const known = new Map<string, string>()
  return (server, tool) => {
    const key = JSON.stringify([server, tool])
    const earlier = known.get(key)
    if (earlier !== undefined) return earlier
    const plain = `${prefixes.get(server)}${toChars(tool)}`
    const isUsable = plain.length <= MAX_CHARS && !taken.has(plain)
    const name = isUsable ? plain : `${plain.slice(0, MAX_CHARS - 9)}_${hashOf([server, tool])}`
    taken.add(name)
    known.set(key, name)
    return name
  }
}

/** The beginnings of the servers' names. None begins with another one: servers for which that would be so have a hash instead. */
function prefixesOf(servers: readonly string[]): Map<string, string> {
  const plain = new Map(servers.map((server) => [server, `${MCP_PREFIX}${toChars(server)}__`]))
  const isAmbiguous = ([server, prefix]: [string, string]) =>
    prefix.length > MAX_PREFIX_CHARS ||
    [...plain].some(([other, its]) => other !== server && (its.startsWith(prefix) || prefix.startsWith(its)))
  return new Map(
    [...plain].map(([server, prefix]) => [
      server,
      isAmbiguous([server, prefix]) ? `${MCP_PREFIX}${hashOf([server])}__` : prefix,
    ]),
  )
}

const toChars = (name: string): string => name.replaceAll(/[^A-Za-z0-9_-]/g, '_')

const hashOf = (names: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(names)).digest('hex').slice(0, 8)

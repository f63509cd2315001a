import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { MCP_PREFIX } from '../usable-tools.ts'

const MAX_CHARS = 64
/** How many names of a server are remembered: more than it can offer at a time. Limited, because a server may rename its tools again and again. */
const MAX_REMEMBERED = 1_000
/** With a longer prefix, the name of a tool would be cut within the prefix. */
const MAX_PREFIX_CHARS = 40

/**
 * Returns a function that names the tools of these servers: `mcp__<server>__<tool>` in the characters and the length that every model
 * API accepts (`[A-Za-z0-9_-]{1,64}`), no name twice. No server can take a name that another server's tool has, even while that
 * server is down, because policies apply to names. The same tool gets the same name again, unless its server has had 1,000 others
 * since.
 */
export function createToolNames(servers: readonly string[]): (server: string, tool: string) => string {
  const names = new Map([...prefixesOf(servers)].map(([server, prefix]) => [server, { prefix, ...rememberedNames() }]))
  return (server, tool) => {
    const ofServer = names.get(server)
    if (!ofServer) throw new Error(`the MCP server ${server} is not among the named ones`)
    const { prefix, known, taken } = ofServer
    const earlier = known.get(tool)
    if (earlier !== undefined) return earlier
    const plain = `${prefix}${toChars(tool)}`
    const isUsable = plain.length <= MAX_CHARS && !taken.has(plain)
    const name = isUsable ? plain : `${plain.slice(0, MAX_CHARS - 9)}_${hashOf([server, tool])}`
    taken.add(name)
    known.set(tool, name)
    return name
  }
}

/** The names of one server's tools; those of other servers have other prefixes. */
function rememberedNames(): { known: LRUCache<string, string>; taken: Set<string> } {
  const taken = new Set<string>()
  const known = new LRUCache<string, string>({ max: MAX_REMEMBERED, dispose: (name) => void taken.delete(name) })
  return { known, taken }
}

/** The prefixes of the servers. No prefix begins with another one: servers for which it would, get a hash instead. */
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

import type { SchemaChecker } from '../../platform/schemas/port.ts'
import { sentenceOf } from '../../platform/schemas/problems.ts'
import type { Tool } from './port.ts'

export const MCP_PREFIX = 'mcp__'

/** Providers accept no more tools (D5.2). */
export const MAX_TOOLS = 128

/** Whether the tool's schema comes from an MCP server, and is not trusted. */
export const isForeign = ({ name }: Tool): boolean => name.startsWith(MCP_PREFIX)

type Selection = {
  schemas: Pick<SchemaChecker, 'findUnusable'>
  taken: ReadonlyMap<string, Tool>
  /** How many more tools may be offered. */
  room: number
}

/**
 * Leaves out MCP tools whose schema cannot be used, and those above the limit, whose schemas are not checked. Throws when two tools
 * have the same name.
 */
export async function selectUsable(
  tools: readonly Tool[],
  { schemas, taken, room }: Selection,
): Promise<{ usable: readonly Tool[]; leftOut: readonly string[] }> {
  const usable = new Map<string, Tool>()
  const aboveLimit: string[] = []
  const check = new SchemaCheck(schemas)
  let newCount = 0
  const ownFirst = [...tools.filter((tool) => !isForeign(tool)), ...tools.filter(isForeign)]
  for (const tool of ownFirst) {
    const isNew = !taken.has(tool.name)
    if (usable.has(tool.name) || !(isNew || isForeign(tool))) throw new Error(`two tools are named ${tool.name}`)
    if (isNew && newCount >= room) aboveLimit.push(tool.name)
    else if (!isForeign(tool) || (await check.isUsable(tool))) {
      usable.set(tool.name, tool)
      if (isNew) newCount += 1
    }
  }
  return { usable: [...usable.values()], leftOut: [...check.leftOut(), ...limitLine(aboveLimit)] }
}

/** After this many schemas that do not compile in time, a server has used enough time: its other tools are not checked. */
const MAX_SLOW = 3

/** Checks the schemas of MCP tools, and keeps count of those that cannot be used. */
class SchemaCheck {
  readonly #schemas: Selection['schemas']
  readonly #wrong: string[] = []
  /** By server. */
  readonly #slow = new Map<string, number>()
  readonly #skipped = new Map<string, number>()

  constructor(schemas: Selection['schemas']) {
    this.#schemas = schemas
  }

  async isUsable({ name, server = '', inputSchema }: Tool): Promise<boolean> {
    const slow = this.#slow.get(server) ?? 0
    if (slow >= MAX_SLOW) {
      this.#skipped.set(server, (this.#skipped.get(server) ?? 0) + 1)
      return false
    }
    const [wrong] = await this.#schemas.findUnusable([inputSchema])
    if (!wrong) return true
    if (wrong.isSlow) this.#slow.set(server, slow + 1)
    this.#wrong.push(`${name} is left out: its input schema cannot be used (${sentenceOf([wrong.problem])})`)
    return false
  }

  leftOut(): string[] {
    const restLine = (count: number) => `${count} more tools are left out: their input schemas cannot be used`
    const skipped = [...this.#skipped].map(
      ([server, count]) =>
        `${count} more tools of the MCP server ${server} are left out: ${MAX_SLOW} of its input schemas are too expensive`,
    )
    return [...withRest(this.#wrong, restLine), ...skipped]
  }
}

const MAX_NAMES = 5

function limitLine(names: readonly string[]): string[] {
  if (names.length === 0) return []
  const rest = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : ''
  const are = names.length === 1 ? 'is' : 'are'
  return [`${names.slice(0, MAX_NAMES).join(', ')}${rest} ${are} left out: at most ${MAX_TOOLS} tools are offered`]
}

const MAX_NAMED = 10

/** The first lines, and one line with the number of the others, because an MCP server decides how many there are. */
export const withRest = (lines: readonly string[], restLine: (count: number) => string): string[] =>
  lines.length <= MAX_NAMED ? [...lines] : [...lines.slice(0, MAX_NAMED), restLine(lines.length - MAX_NAMED)]

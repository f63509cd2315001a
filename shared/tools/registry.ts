import type { JsonObject } from '../events.ts'
import { createInputCheck, type InputCheck } from './input-check.ts'
import type { Policy, Tool, ToolBox } from './port.ts'

/** Every name of D5.1: TOOL_PERMISSIONS may name them all, also those that this process does not offer (`Bash`). */
export const BUILT_IN_TOOLS: readonly string[] =
  'Read Write Edit Glob Grep WebFetch TodoWrite Agent Skill Team Dream ExitPlanMode Bash'.split(' ')

export const MCP_PREFIX = 'mcp__'

export type ToolRegistryDeps = {
  tools: readonly Tool[]
  /** TOOL_PERMISSIONS (D1.3): tool name -> policy, in place of the tool's own. */
  permissions: Readonly<Record<string, Policy>>
}

export type ToolRegistry = ToolBox & {
  /** What is wrong with TOOL_PERMISSIONS, a line per entry; the start stops there. */
  readonly problems: readonly string[]
  /** Which MCP tools are not offered because of their schema, a line per tool; the start goes on. */
  readonly leftOut: readonly string[]
}

/** A tool as `GET /tools` shows it (api.md "Tools"). */
export type ToolInfo = { name: string; description: string; input_schema: JsonObject }

export const toToolInfo = ({ name, description, inputSchema }: Tool): ToolInfo => ({
  name,
  description,
  input_schema: inputSchema,
})

/** The tools of a process under their effective policies. Our own schemas are compiled at first use, those of MCP servers at once. */
export function createToolRegistry({ tools, permissions }: ToolRegistryDeps): ToolRegistry {
  const check = createInputCheck()
  const { offered, leftOut } = fitting(tools, check)
  const byName = new Map(offered.map((tool) => [tool.name, tool]))
  const policies = new Map(Object.entries(permissions))
  return {
    tools: offered,
    find: (name) => byName.get(name),
    policyOf: (name) => policies.get(name) ?? byName.get(name)?.defaultPolicy ?? 'deny',
    problemWith(name, input) {
      const tool = byName.get(name)
      return tool ? check.problemWith(tool, input) : `There is no tool ${name}.`
    },
    problems: unknownNames(byName, policies),
    leftOut,
  }
}

function fitting(tools: readonly Tool[], check: InputCheck): { offered: readonly Tool[]; leftOut: readonly string[] } {
  const offered = new Map<string, Tool>()
  const leftOut: string[] = []
  for (const tool of tools) {
    if (offered.has(tool.name)) throw new Error(`two tools are named ${tool.name}`)
    const problem = tool.name.startsWith(MCP_PREFIX) ? check.schemaProblem(tool) : undefined
    if (problem === undefined) offered.set(tool.name, tool)
    else leftOut.push(`${tool.name} is left out: its input schema cannot be used (${problem})`)
  }
  return { offered: [...offered.values()], leftOut }
}

/** An MCP server may be away at this start, so its tools' names are not judged. */
function unknownNames(byName: ReadonlyMap<string, Tool>, policies: ReadonlyMap<string, Policy>): string[] {
  const isKnown = (name: string) => byName.has(name) || BUILT_IN_TOOLS.includes(name) || name.startsWith(MCP_PREFIX)
  return [...policies.keys()]
    .filter((name) => !isKnown(name))
    .map((name) => `TOOL_PERMISSIONS: there is no tool ${name}. The tools are ${BUILT_IN_TOOLS.join(', ')}.`)
}

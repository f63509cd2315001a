import { retryUntil } from '../../kernel/async/retry.ts'
import { AppError, hasKind } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { Validate } from '../../platform/schemas/compile.ts'
import type { SchemaChecker, SchemaProblem } from '../../platform/schemas/port.ts'
import { sentenceOf } from '../../platform/schemas/problems.ts'
import { looseSchema } from './loose-schema.ts'
import { createPolicyRules, type PolicyRules, readRule } from './policy-rules.ts'
import type { Policy, Tool, ToolBox } from './port.ts'
import { isForeign, MAX_TOOLS, MCP_PREFIX, selectUsable } from './usable-tools.ts'
import { isAddressRule } from './web/address-rules.ts'
import { matchesWildcard } from './wildcard.ts'

/** All names of D5.1. TOOL_PERMISSIONS may name any of them, also one that this process does not offer (`Bash`). */
const BUILT_IN_TOOLS: readonly string[] =
  'Read Write Edit Glob Grep WebFetch TodoWrite Agent Skill Team Dream ExitPlanMode Bash'.split(' ')

export type ToolRegistryDeps = {
  tools: readonly Tool[]
  /** TOOL_PERMISSIONS (D1.3): policies by rule; they replace the tools' default policies. */
  permissions: ReadonlyMap<string, Policy>
  /** Checks the schemas of MCP tools, and inputs against them. */
  schemas: SchemaChecker
}

export type ToolRegistry = ToolBox & {
  /**
   * Offers more tools from now on, in the same list; a tool of an MCP server replaces one with the same name. Returns messages
   * about those that are left out.
   */
  add(tools: readonly Tool[]): Promise<readonly string[]>
  /** Stops offering these tools. */
  remove(names: readonly string[]): void
  /** One message for each wrong entry of TOOL_PERMISSIONS; with any of them the process does not start. */
  readonly problems: readonly string[]
  /** Messages about the MCP tools that are not offered; the process starts without them. */
  readonly leftOut: readonly string[]
}

/** Creates the tools of a process with their policies. The schemas of MCP tools are checked at once, the others compiled at first use. */
export async function createToolRegistry({ tools, permissions, schemas }: ToolRegistryDeps): Promise<ToolRegistry> {
  const rules = createPolicyRules(permissions)
  const list = createToolList(schemas, rules)
  const leftOut = await list.add(tools)
  const inputProblems = createInputCheck(schemas)
  const { find } = list
  return {
    ...list,
    policyOf(name, input, isEdited) {
      const tool = find(name)
      if (!tool) return 'deny'
      const policy = rules.policyOf(tool, input, isEdited) ?? tool.defaultPolicy
      return policy !== 'deny' && tool.alwaysAsks ? 'ask' : policy
    },
    async problemWith(name, input) {
      const tool = find(name)
      if (!tool) return `There is no tool ${name}.`
      const problems = await inputProblems(tool, input)
      if (problems.length > 0) return `The input of ${name} is wrong: ${sentenceOf(problems)}.`
      return tool.problemWith?.(input)
    },
    async formProblem(form, content) {
      const problems = await schemas.check(form, content)
      return problems.length > 0 ? `The answer to the form is wrong: ${sentenceOf(problems)}.` : undefined
    },
    problems: policyProblems('TOOL_PERMISSIONS', permissions, { find }),
    leftOut,
  }
}

type ToolList = Pick<ToolRegistry, 'tools' | 'find' | 'add' | 'remove'>

/** A tool that the policy denies for every input can be found, but is not offered. */
function createToolList(schemas: SchemaChecker, { denies }: Pick<PolicyRules, 'denies'>): ToolList {
  const offered: Tool[] = []
  const byName = new Map<string, Tool>()
  return {
    tools: offered,
    find: (name) => byName.get(name),
    async add(more) {
      const { usable, leftOut } = await selectUsable(more, { schemas, taken: byName, room: MAX_TOOLS - offered.length })
      for (const tool of usable) {
        const earlier = byName.get(tool.name)
        byName.set(tool.name, tool)
        if (denies(tool)) continue
        if (earlier) offered.splice(offered.indexOf(earlier), 1, tool)
        else offered.push(tool)
      }
      return leftOut
    },
    remove(names) {
      for (const name of names) {
        const tool = byName.get(name)
        if (tool && byName.delete(name) && !denies(tool)) offered.splice(offered.indexOf(tool), 1)
      }
    },
  }
}

/** The built-in tools whose rules may have a subject: `Bash(npm test)`. */
const WITH_SUBJECT: readonly string[] = ['Read', 'Write', 'Edit', 'WebFetch', 'Bash']

/**
 * One message for each rule that no tool can match; `variable` is the setting that holds the rules. Names of MCP tools are not
 * checked: their server may not be running at the start.
 */
export function policyProblems(
  variable: string,
  policies: ReadonlyMap<string, Policy>,
  { find }: Pick<ToolBox, 'find'>,
): string[] {
  const isKnown = (name: string) =>
    find(name) || name.startsWith(MCP_PREFIX) || BUILT_IN_TOOLS.some((tool) => matchesWildcard(name, tool))
  return [...policies.keys()].flatMap((rule) => {
    const { name, subject } = readRule(rule)
    if (!isKnown(name)) return [`${variable}: there is no tool ${name}. The tools are ${BUILT_IN_TOOLS.join(', ')}.`]
    if (name === 'WebFetch' && subject !== undefined && !isAddressRule(subject))
      return [`${variable}: ${rule} must name a scheme and a host, such as WebFetch(https://docs.example.com/*).`]
    if (subject === undefined || WITH_SUBJECT.includes(name)) return []
    return [`${variable}: ${rule} must be without brackets; only ${WITH_SUBJECT.join(', ')} take them.`]
  })
}

/** How long an input waits while too many others are being checked. After that the model reads an error, and can call the tool again. */
const CHECK_WITHIN_MS = 10_000
const CHECK_AGAIN_MS = 50

type InputCheck = (tool: Tool, input: JsonObject) => Promise<readonly SchemaProblem[]>

/** Checks inputs against their tools' schemas: those of MCP tools in a thread, because their schemas are not trusted. */
function createInputCheck(schemas: SchemaChecker): InputCheck {
  const compiled = new WeakMap<Tool, Validate>()
  const checkOwn: InputCheck = async (tool, input) => {
    const validate = compiled.get(tool) ?? (await compile(tool.inputSchema))
    compiled.set(tool, validate)
    return validate(input)
  }
  const checkForeign: InputCheck = async (tool, input) => {
    try {
      return await retryUntil(() => schemas.check(looseSchema(tool.inputSchema), input), {
        pauses: CHECK_AGAIN_MS,
        mayPass: (cause) => hasKind(cause, 'rate_limit'),
        until: performance.now() + CHECK_WITHIN_MS,
      })
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause
      return [{ path: '', message: 'cannot be checked now, try again later' }]
    }
  }
  return (tool, input) => (isForeign(tool) ? checkForeign(tool, input) : checkOwn(tool, input))
}

/** Loads the compiler at first use, because it takes 14 MB. */
async function compile(schema: JsonObject): Promise<Validate> {
  const { compileSchema } = await import('../../platform/schemas/compile.ts')
  return compileSchema(schema)
}

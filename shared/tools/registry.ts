import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { JsonObject } from '../events.ts'
import type { Policy, Tool, ToolBox } from './port.ts'

/** Every name of D5.1: TOOL_PERMISSIONS may name them all, also those that this process does not offer (`Bash`). */
const BUILT_IN_TOOLS: readonly string[] =
  'Read Write Edit Glob Grep WebFetch TodoWrite Agent Skill Team Dream ExitPlanMode Bash'.split(' ')

export const MCP_PREFIX = 'mcp__'

export type ToolRegistryDeps = {
  tools: readonly Tool[]
  /** TOOL_PERMISSIONS (D1.3): tool name -> policy, in place of the tool's own. */
  permissions: ReadonlyMap<string, Policy>
}

export type ToolRegistry = ToolBox & {
  /** What is wrong with TOOL_PERMISSIONS, a line per entry; the start stops there. */
  readonly problems: readonly string[]
  /** Which MCP tools are not offered because of their schema, a line per tool; the start goes on. */
  readonly leftOut: readonly string[]
}

/** The tools of a process under their effective policies. Our own schemas are compiled at first use, those of MCP servers at once. */
export function createToolRegistry({ tools, permissions }: ToolRegistryDeps): ToolRegistry {
  const check = createInputCheck()
  const { offered, leftOut } = fitting(tools, check)
  const byName = new Map(offered.map((tool) => [tool.name, tool]))
  return {
    tools: offered,
    find: (name) => byName.get(name),
    policyOf(name) {
      const tool = byName.get(name)
      const policy = permissions.get(name) ?? tool?.defaultPolicy ?? 'deny'
      return policy === 'allow' && tool?.alwaysAsks ? 'ask' : policy
    },
    problemWith(name, input) {
      const tool = byName.get(name)
      if (!tool) return `There is no tool ${name}.`
      return check.problemWith(tool, input) ?? tool.problemWith?.(input)
    },
    problems: unknownNames(byName, permissions),
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

type InputCheck = {
  /** What is wrong with an input, in words for the model; throws when the tool's schema does not compile. */
  problemWith(tool: Tool, input: JsonObject): string | undefined
  /** Why the tool's schema cannot be used. */
  schemaProblem(tool: Tool): string | undefined
}

/** Checks inputs against their tools' schemas. A schema is compiled once, when its tool is first used. */
function createInputCheck(): InputCheck {
  const compile = createCompiler()
  const compiled = new WeakMap<Tool, ValidateFunction>()
  const validatorOf = (tool: Tool): ValidateFunction => {
    const validate = compiled.get(tool) ?? compile(tool.inputSchema)
    compiled.set(tool, validate)
    return validate
  }
  return {
    problemWith(tool, input) {
      const validate = validatorOf(tool)
      return isValid(validate, input) ? undefined : `The input of ${tool.name} is wrong: ${inWords(validate.errors)}.`
    },
    schemaProblem(tool) {
      try {
        validatorOf(tool)({}) // A schema that only refers to itself compiles, and overflows the stack here.
        return undefined
      } catch (cause) {
        return cause instanceof Error ? cause.message : 'it does not compile'
      }
    },
  }
}

/** Draft 2020-12, or draft-07 for a schema that says so (many MCP servers do). */
function createCompiler(): (schema: JsonObject) => ValidateFunction {
  // The meta-schemas are not compiled (30 ms each); what is wrong with a schema shows when it is itself compiled.
  const options = { strict: false, validateSchema: false, meta: false, logger: false, validateFormats: false } as const
  const load = createRequire(import.meta.url) // At first use, and synchronously: 14 MB that an idle process does without.
  let draft2020: Ajv | undefined
  let draft07: Ajv | undefined
  return (inputSchema) => {
    // Without its id: two servers may use the same one.
    const schema = Object.fromEntries(Object.entries(inputSchema).filter(([key]) => key !== '$schema' && key !== '$id'))
    if (JSON.stringify(inputSchema['$schema'])?.includes('draft-07')) {
      draft07 ??= new (load('ajv') as typeof import('ajv')).Ajv(options)
      return draft07.compile(schema)
    }
    draft2020 ??= new (load('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020(options)
    return draft2020.compile(schema)
  }
}

/** A schema that refers to itself goes as deep as the input, which may be deeper than the stack. */
function isValid(validate: ValidateFunction, input: JsonObject): boolean {
  try {
    return validate(input)
  } catch (cause) {
    if (cause instanceof RangeError) return false
    throw cause
  }
}

/** The last error is the outermost: of an `anyOf`, that none fits. */
function inWords(errors: readonly ErrorObject[] | null | undefined): string {
  const error = errors?.at(-1)
  if (!error) return 'it does not fit its schema'
  const { keyword, params, message = 'does not fit' } = error
  const place = error.instancePath.slice(1).replaceAll('/', '.') || 'it'
  if (keyword === 'required') return `${place === 'it' ? '' : `${place}.`}${params['missingProperty']} is missing`
  if (keyword === 'enum') return `${place} must be one of ${JSON.stringify(params['allowedValues'])}`
  if (keyword === 'additionalProperties') return `${place} has no ${JSON.stringify(params['additionalProperty'])}`
  return `${place} ${message}`
}

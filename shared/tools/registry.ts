import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { JsonObject } from '../events.ts'
import type { Policy, Tool, ToolBox } from './port.ts'

/** All names of D5.1. TOOL_PERMISSIONS may hold any of them, also one that this process does not offer (`Bash`). */
const BUILT_IN_TOOLS: readonly string[] =
  'Read Write Edit Glob Grep WebFetch TodoWrite Agent Skill Team Dream ExitPlanMode Bash'.split(' ')

export const MCP_PREFIX = 'mcp__'

export type ToolRegistryDeps = {
  tools: readonly Tool[]
  /** TOOL_PERMISSIONS (D1.3): policies by tool name; they replace the tools' default policies. */
  permissions: ReadonlyMap<string, Policy>
}

export type ToolRegistry = ToolBox & {
  /** One message for each wrong entry of TOOL_PERMISSIONS; the process does not start with any. */
  readonly problems: readonly string[]
  /** One message for each MCP tool that is not offered because of its schema; the process starts without it. */
  readonly leftOut: readonly string[]
}

/** Creates the tools of a process with their policies. The schemas of MCP tools are compiled at once, the others at first use. */
export function createToolRegistry({ tools, permissions }: ToolRegistryDeps): ToolRegistry {
  const check = createInputCheck()
  const { offered, leftOut } = selectUsable(tools, check)
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
    problems: problemsOf(byName, permissions),
    leftOut,
  }
}

/** Leaves out MCP tools whose schema cannot be used. Throws when two tools have the same name. */
function selectUsable(
  tools: readonly Tool[],
  check: InputCheck,
): { offered: readonly Tool[]; leftOut: readonly string[] } {
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

/** Names of MCP tools are not checked: their server may not be running at the start. */
function problemsOf(byName: ReadonlyMap<string, Tool>, policies: ReadonlyMap<string, Policy>): string[] {
  const isKnown = (name: string) => byName.has(name) || BUILT_IN_TOOLS.includes(name) || name.startsWith(MCP_PREFIX)
  return [...policies.keys()]
    .filter((name) => !isKnown(name))
    .map((name) => `TOOL_PERMISSIONS: there is no tool ${name}. The tools are ${BUILT_IN_TOOLS.join(', ')}.`)
}

type InputCheck = {
  /** Says, in words for the model, what is wrong with an input. Throws when the tool's schema does not compile. */
  problemWith(tool: Tool, input: JsonObject): string | undefined
  /** Says why the tool's schema cannot be used. */
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
      return isValid(validate, input)
        ? undefined
        : `The input of ${tool.name} is wrong: ${describeErrors(validate.errors)}.`
    },
    schemaProblem(tool) {
      try {
        validatorOf(tool)({}) // A schema that consists of a reference to itself compiles, but overflows the stack here.
        return undefined
      } catch (cause) {
        return cause instanceof Error ? cause.message : 'it does not compile'
      }
    },
  }
}

/** Compiles schemas of draft 2020-12, or of draft-07 when the schema names it (many MCP servers do). */
function createCompiler(): (schema: JsonObject) => ValidateFunction {
  // Without the meta-schemas, which take 30 ms each to compile: compiling a wrong schema fails anyway.
  const options = { strict: false, validateSchema: false, meta: false, logger: false, validateFormats: false } as const
  const load = createRequire(import.meta.url) // Loaded at first use, because ajv takes 14 MB; synchronously, because the callers are.
  let draft2020: Ajv | undefined
  let draft07: Ajv | undefined
  return (inputSchema) => {
    // Without the id, because schemas of two servers may have the same one.
    const schema = Object.fromEntries(Object.entries(inputSchema).filter(([key]) => key !== '$schema' && key !== '$id'))
    if (JSON.stringify(inputSchema['$schema'])?.includes('draft-07')) {
      draft07 ??= new (load('ajv') as typeof import('ajv')).Ajv(options)
      return draft07.compile(schema)
    }
    draft2020 ??= new (load('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020(options)
    return draft2020.compile(schema)
  }
}

/** A recursive schema is evaluated as deep as the input is nested, which can overflow the stack. */
function isValid(validate: ValidateFunction, input: JsonObject): boolean {
  try {
    return validate(input)
  } catch (cause) {
    if (cause instanceof RangeError) return false
    throw cause
  }
}

/** Uses the last error, which is the outermost one: for an `anyOf`, that no alternative matched. */
function describeErrors(errors: readonly ErrorObject[] | null | undefined): string {
  const error = errors?.at(-1)
  if (!error) return 'it does not fit its schema'
  const { keyword, params, message = 'does not fit' } = error
  const place = error.instancePath.slice(1).replaceAll('/', '.') || 'it'
  if (keyword === 'required') return `${place === 'it' ? '' : `${place}.`}${params['missingProperty']} is missing`
  if (keyword === 'enum') return `${place} must be one of ${JSON.stringify(params['allowedValues'])}`
  if (keyword === 'additionalProperties') return `${place} has no ${JSON.stringify(params['additionalProperty'])}`
  return `${place} ${message}`
}

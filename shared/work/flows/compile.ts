import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { quoted } from '../../kernel/text.ts'
import type { SchemaChecker } from '../../platform/schemas/port.ts'
import { MAX_SUB_AGENTS } from './definition.ts'
import type { FlowDefinition, FlowTemplates, SubAgentDefinition } from './port.ts'
import { createSchemaPaths, type SchemaPaths } from './schema-paths.ts'
import { type ParsedTemplate, parseTemplate, type Reference } from './template.ts'

/** A reason why a definition cannot be used. `path` is a JSON pointer into the definition. */
export type FlowProblem = { path: string; message: string }

/** `usesMemory`: at least one prompt holds the flow's memory. */
export type CompiledFlow = { templates: FlowTemplates; usesMemory: boolean }

/** At least one. */
export type FlowProblems = readonly [FlowProblem, ...FlowProblem[]]

/**
 * Checks a definition, both for publishing and for execution (D6.3). Returns all problems, in the order of tools, sub-agents, schemas and
 * templates. A definition that was published has a little more time. Throws `unavailable` when the schemas cannot be checked at the moment.
 */
export type CompileFlow = (
  tenant: TenantId,
  definition: FlowDefinition,
  options?: { wasPublished?: boolean },
) => Promise<CompiledFlow | { problems: FlowProblems }>

type CompilerDeps = {
  checkers: { of(tenant: TenantId): Pick<SchemaChecker, 'findUnusable'> }
  /** The names of the tools that flows may use. */
  tools: () => readonly string[]
}

/** Remembers what it has compiled for as long as the definition object lives. The tools are checked each time: tools may be added and removed. */
export function createFlowCompiler({ checkers, tools }: CompilerDeps): CompileFlow {
  const compiled = new WeakMap<FlowDefinition, CompiledFlow>()
  return async (tenant, definition, { wasPublished } = {}) => {
    const toolProblems = findToolProblems(definition, tools())
    const earlier = compiled.get(definition)
    if (earlier && toolProblems.length === 0) return earlier
    const schemas = await readSchemas(definition, { checker: checkers.of(tenant), wereAccepted: wasPublished })
    const { problems: templateProblems, ...flow } = compileTemplates(definition, schemas)
    const [first, ...others] = [
      ...toolProblems,
      ...findSubAgentProblems(definition.sub_agents),
      ...schemas.problems,
      ...templateProblems,
    ]
    if (first) return { problems: [first, ...others] }
    compiled.set(definition, flow)
    return flow
  }
}

function findToolProblems({ tools, sub_agents: agents }: FlowDefinition, known: readonly string[]): FlowProblem[] {
  const lists = [{ tools, at: '/tools' }, ...agents.map((agent, i) => ({ ...agent, at: `/sub_agents/${i}/tools` }))]
  return lists.flatMap(({ tools: names, at }) =>
    [...names.entries()]
      .filter(([, name]) => !known.includes(name))
      .map(([i, name]) =>
        problemAt(`${at}/${i}`, `there is no tool ${quoted(name)}; GET /flows/tools lists the tools`),
      ),
  )
}

/** `main` is the name of the main agent in events and messages. */
const RESERVED: ReadonlySet<string> = new Set(['memory', 'main'])

function findSubAgentProblems(agents: readonly SubAgentDefinition[]): FlowProblem[] {
  if (agents.length > MAX_SUB_AGENTS)
    return [problemAt('/sub_agents', `at most ${MAX_SUB_AGENTS} sub-agents are allowed`)]
  return agents.flatMap(({ name }, i) => {
    const at = `/sub_agents/${i}/name`
    if (RESERVED.has(name)) return [problemAt(at, `the name ${name} is reserved; use another one`)]
    const isTwin = agents.findIndex((other) => other.name === name) < i
    return isTwin ? [problemAt(at, `two sub-agents are named ${name}; rename one`)] : []
  })
}

/** The problems of the schemas, and the paths to which templates may refer: in the input, and in the output of each sub-agent in order. */
type SchemaReport = { problems: FlowProblem[]; input: SchemaPaths; outputs: readonly SchemaPaths[] }

/** For a schema that cannot be used or was not checked: every reference into it is accepted. */
const ANY_PATH: SchemaPaths = { describesObject: true, has: () => true }

async function readSchemas(
  { input_schema: input, output_schema: output, sub_agents: agents }: FlowDefinition,
  { checker, wereAccepted }: { checker: Pick<SchemaChecker, 'findUnusable'>; wereAccepted: boolean | undefined },
): Promise<SchemaReport> {
  const named: (readonly [string, JsonObject])[] = [
    ['/input_schema', input],
    ['/output_schema', output],
    ...agents.map(({ output_schema: schema }, i) => [`/sub_agents/${i}/output_schema`, schema] as const),
  ]
  const schemas = named.map(([, schema]) => schema)
  const unusable = await checker.findUnusable(schemas, { wereAccepted })
  const uncheckedFrom = unusable.find(({ isSlow }) => isSlow)?.at ?? schemas.length
  const [inputPaths = ANY_PATH, , ...outputs] = schemas.map((schema, i) =>
    i >= uncheckedFrom || unusable.some(({ at }) => at === i) ? ANY_PATH : createSchemaPaths(schema),
  )
  const problems = unusable.map(({ at, problem }) => problemAt(`${named[at]?.[0]}${problem.path}`, problem.message))
  if (!inputPaths.describesObject) problems.unshift(problemAt('/input_schema', NO_OBJECT))
  return { problems, input: inputPaths, outputs }
}

const NO_OBJECT = 'the input is always an object: add "type": "object" to input_schema'

function compileTemplates(
  definition: FlowDefinition,
  { input, outputs: paths }: SchemaReport,
): CompiledFlow & { problems: FlowProblem[] } {
  const { system_prompt_template: system, user_prompt_template: user, sub_agents: agents } = definition
  const outputs = new Map(agents.map(({ name }, i) => [name, paths[i] ?? ANY_PATH]))
  const parsed = new Map<string, ParsedTemplate>()
  const problems: FlowProblem[] = []
  const texts: Source[] = [
    { path: '/system_prompt_template', text: system, scope: { input, outputs } },
    { path: '/user_prompt_template', text: user, scope: { input, outputs } },
    ...agents.map(({ prompt }, i) => ({ path: promptPath(i), text: prompt, scope: { input } })),
  ]
  for (const { path, text, scope } of texts) {
    if (text === undefined) continue
    const template = parseTemplate(text)
    const messages = 'problem' in template ? [template.problem] : referenceProblems(template.references, scope)
    problems.push(...messages.map((message) => problemAt(path, message)))
    if (!('problem' in template)) parsed.set(path, template)
  }
  return { ...toCompiled(parsed, agents), problems }
}

function toCompiled(parsed: ReadonlyMap<string, ParsedTemplate>, agents: readonly SubAgentDefinition[]): CompiledFlow {
  const [systemTemplate, userTemplate] = [parsed.get('/system_prompt_template'), parsed.get('/user_prompt_template')]
  const prompts = agents.flatMap(({ name }, i) => {
    const prompt = parsed.get(promptPath(i))
    return prompt ? [[name, prompt] as const] : []
  })
  const references = [...parsed.values()].flatMap((template) => template.references)
  return {
    usesMemory: !systemTemplate || references.some(({ root }) => root === 'memory'), // The default system prompt contains the memory.
    templates: {
      ...(systemTemplate && { system: systemTemplate }),
      ...(userTemplate && { user: userTemplate }),
      subAgents: new Map(prompts),
    },
  }
}

/** The values that a template may use. A sub-agent's prompt has no outputs: the sub-agents run at the same time. */
type Scope = { input: SchemaPaths; outputs?: ReadonlyMap<string, SchemaPaths> }
type Source = { path: string; text: string | undefined; scope: Scope }

const promptPath = (i: number) => `/sub_agents/${i}/prompt`

function referenceProblem({ root, path }: Reference, { input, outputs }: Scope): string | undefined {
  const shown = `{{.${quoted([root, ...path].join('.'))}}}`
  if (root === 'memory') return undefined
  if (root === 'input')
    return input.has(path) ? undefined : `${shown} is not in input_schema; declare the property or correct the path`
  if (!outputs) return `${shown} cannot be used here: sub-agents run at the same time and see no other's output`
  const [name = '', ...rest] = path
  const output = outputs.get(name)
  if (!output)
    return `${shown} names no sub-agent; the sub-agents are: ${quoted([...outputs.keys()].join(', ')) || 'none'}`
  return output.has(rest) ? undefined : `${shown} is not in the output_schema of ${name}; correct the path`
}

/** Each problem once, however often a template repeats the reference. */
const referenceProblems = (references: readonly Reference[], scope: Scope): string[] => [
  ...new Set(references.flatMap((reference) => referenceProblem(reference, scope) ?? [])),
]

const problemAt = (path: string, message: string): FlowProblem => ({ path, message })

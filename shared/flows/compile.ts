import type { JsonObject } from '../events.ts'
import type { SchemaChecker } from '../schemas/port.ts'
import { quoted } from '../text.ts'
import { MAX_SUB_AGENTS } from './definition.ts'
import type { FlowDefinition, FlowTemplates, SubAgentDefinition } from './port.ts'
import { createSchemaPaths, type SchemaPaths } from './schema-paths.ts'
import { type ParsedTemplate, parseTemplate, type Reference } from './template.ts'

/** Why a definition cannot be used. `path` is a JSON pointer into the definition. */
export type FlowProblem = { path: string; message: string }

/** `usesMemory`: at least one prompt holds the flow's memory. */
export type CompiledFlow = { templates: FlowTemplates; usesMemory: boolean }

/**
 * Checks a definition, for publishing and for execution alike (D6.3). Returns the first problem. A definition that was published has a
 * little more time. Throws `unavailable` when the schemas cannot be checked at the moment.
 */
export type CompileFlow = (
  definition: FlowDefinition,
  options?: { wasPublished?: boolean },
) => Promise<CompiledFlow | { problem: FlowProblem }>

type CompilerDeps = {
  checker: Pick<SchemaChecker, 'findUnusable'>
  /** The names of the tools that flows may use. */
  tools: () => readonly string[]
}

/** Remembers what it has compiled for as long as the definition object lives. The tools are checked each time: they may come and go. */
export function createFlowCompiler({ checker, tools }: CompilerDeps): CompileFlow {
  const compiled = new WeakMap<FlowDefinition, CompiledFlow>()
  return async (definition, { wasPublished } = {}) => {
    const toolProblem = findToolProblem(definition, tools())
    if (toolProblem) return { problem: toolProblem }
    const earlier = compiled.get(definition)
    if (earlier) return earlier
    const problem =
      findSubAgentProblem(definition.sub_agents) ??
      (await findSchemaProblem(definition, { checker, wereAccepted: wasPublished })) ??
      findInputProblem(definition)
    const result = problem ? { problem } : compileTemplates(definition)
    if (!('problem' in result)) compiled.set(definition, result)
    return result
  }
}

function findToolProblem({ tools, sub_agents: agents }: FlowDefinition, known: readonly string[]) {
  const lists = [{ tools, at: '/tools' }, ...agents.map((agent, i) => ({ ...agent, at: `/sub_agents/${i}/tools` }))]
  for (const { tools: names, at } of lists) {
    const i = names.findIndex((name) => !known.includes(name))
    if (i >= 0)
      return problemAt(`${at}/${i}`, `there is no tool ${quoted(names[i] ?? '')}; GET /flows/tools lists the tools`)
  }
  return undefined
}

/** `main` is the name of the main agent in events and messages. */
const RESERVED: ReadonlySet<string> = new Set(['memory', 'main'])

function findSubAgentProblem(agents: readonly SubAgentDefinition[]): FlowProblem | undefined {
  if (agents.length > MAX_SUB_AGENTS)
    return problemAt('/sub_agents', `at most ${MAX_SUB_AGENTS} sub-agents are allowed`)
  const names = new Set<string>()
  for (const [i, { name }] of agents.entries()) {
    if (RESERVED.has(name)) return problemAt(`/sub_agents/${i}/name`, `the name ${name} is reserved; use another one`)
    if (names.has(name)) return problemAt(`/sub_agents/${i}/name`, `two sub-agents are named ${name}; rename one`)
    names.add(name)
  }
  return undefined
}

async function findSchemaProblem(
  { input_schema: input, output_schema: output, sub_agents: agents }: FlowDefinition,
  { checker, wereAccepted }: Pick<CompilerDeps, 'checker'> & { wereAccepted: boolean | undefined },
): Promise<FlowProblem | undefined> {
  const schemas: (readonly [string, JsonObject])[] = [
    ['/input_schema', input],
    ['/output_schema', output],
    ...agents.map(({ output_schema: schema }, i) => [`/sub_agents/${i}/output_schema`, schema] as const),
  ]
  const unusable = await checker.findUnusable(
    schemas.map(([, schema]) => schema),
    { wereAccepted },
  )
  if (!unusable) return undefined
  const { at, problem } = unusable
  return problemAt(`${schemas[at]?.[0]}${problem.path}`, problem.message)
}

const findInputProblem = ({ input_schema: schema }: FlowDefinition): FlowProblem | undefined =>
  createSchemaPaths(schema).describesObject
    ? undefined
    : problemAt('/input_schema', 'the input is always an object: add "type": "object" to input_schema')

function compileTemplates(definition: FlowDefinition): CompiledFlow | { problem: FlowProblem } {
  const { system_prompt_template: system, user_prompt_template: user, sub_agents: agents } = definition
  const input = createSchemaPaths(definition.input_schema)
  const outputs = new Map(agents.map(({ name, output_schema: schema }) => [name, createSchemaPaths(schema)]))
  const parsed = new Map<string, ParsedTemplate>()
  const texts: Source[] = [
    { path: '/system_prompt_template', text: system, scope: { input, outputs } },
    { path: '/user_prompt_template', text: user, scope: { input, outputs } },
    ...agents.map(({ prompt }, i) => ({ path: promptPath(i), text: prompt, scope: { input } })),
  ]
  for (const { path, text, scope } of texts) {
    if (text === undefined) continue
    const template = parseTemplate(text)
    if ('problem' in template) return { problem: problemAt(path, template.problem) }
    const message = firstOf(template.references, (reference) => referenceProblem(reference, scope))
    if (message !== undefined) return { problem: problemAt(path, message) }
    parsed.set(path, template)
  }
  const [systemTemplate, userTemplate] = [parsed.get('/system_prompt_template'), parsed.get('/user_prompt_template')]
  const prompts = agents.flatMap(({ name }, i) => {
    const prompt = parsed.get(promptPath(i))
    return prompt ? [[name, prompt] as const] : []
  })
  const references = [...parsed.values()].flatMap((template) => template.references)
  return {
    usesMemory: !systemTemplate || references.some(({ root }) => root === 'memory'), // The default system prompt holds it.
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
  if (!output) return `${shown} names no sub-agent; the sub-agents are: ${[...outputs.keys()].join(', ') || 'none'}`
  return output.has(rest) ? undefined : `${shown} is not in the output_schema of ${name}; correct the path`
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

const problemAt = (path: string, message: string): FlowProblem => ({ path, message })

import { expect } from 'chai'
import { createProvider } from '../../../../services/wiring/models/create-provider.ts'
import type { ModelLimits } from '../../../../shared/agent/providers/limits.ts'
import type { ModelProvider } from '../../../../shared/agent/providers/port.ts'
import { succeed, type Tool, type ToolBox } from '../../../../shared/agent/tools/port.ts'
import type { FlowEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { SchemaProblem } from '../../../../shared/platform/schemas/port.ts'
import type { FlowExecution, FlowResources } from '../../../../shared/work/flows/execute/execute.ts'
import { executeFlow, type FlowOutcome } from '../../../../shared/work/flows/execute/execute.ts'
import type { FlowDefinition, SubAgentDefinition, Template } from '../../../../shared/work/flows/port.ts'
import { parseTemplate } from '../../../../shared/work/flows/template.ts'
import { type ModelServer, type Received, startModelServer } from '../../../support/model-server/model-server.ts'

export const TRACE_ID = 'trace_0123456789abcdef0123456789abcdef'
export const INPUT: JsonObject = { text: 'hello' }

export const SCHEMA: JsonObject = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false,
}

export const GOOD = '{"answer":"yes"}'
/** The problem that the checker of these tests reports for an answer without `answer`. */
export const MISSING: SchemaProblem = { path: '/answer', message: 'is missing' }

export const definitionOf = (fields: Partial<FlowDefinition> = {}): FlowDefinition => ({
  input_schema: { type: 'object' },
  output_schema: SCHEMA,
  tools: [],
  sub_agents: [],
  evolve: false,
  ...fields,
})

export const subOf = (name: string, fields: Partial<SubAgentDefinition> = {}): SubAgentDefinition => ({
  name,
  prompt: `You are ${name}.`,
  output_schema: SCHEMA,
  tools: [],
  ...fields,
})

/** A flow with these sub-agents; their prompts are `You are <name>.` */
export function flowOf(names: string[], fields: Partial<SubAgentDefinition> = {}): Partial<FlowExecution> {
  const definition = definitionOf({ sub_agents: names.map((name) => subOf(name, fields)) })
  const subAgents = new Map(names.map((name) => [name, templateOf(`You are ${name}.`)]))
  return { flow: { name: 'review', version: 3, definition }, templates: { subAgents } }
}

export function templateOf(text: string): Template {
  const template = parseTemplate(text)
  if ('problem' in template) throw new Error(template.problem)
  return template
}

export const systemOf = ({ body }: Received): string => {
  const [first] = body['messages'] as { role: string; content: string }[]
  return first?.role === 'system' ? first.content : ''
}

export const isFrom = (name: string, request: Received): boolean => systemOf(request).startsWith(`You are ${name}.`)

export const isFromMain = (request: Received): boolean => systemOf(request).startsWith('You carry out the flow')

/** The last message of a request. */
export const lastOf = ({ body }: Received): string => (body['messages'] as { content: string }[]).at(-1)?.content ?? ''

export type Played = { events: FlowEvent[]; outcome: FlowOutcome }

/** Instances of a tenant, each with a model server of its own, and what a flow needs besides. */
export class Bench {
  readonly servers = new Map<string, ModelServer>()
  readonly bugs: unknown[] = []
  /** The instances in the order in which they were opened. */
  readonly opened: string[] = []
  /** Of single instances; the others have all the time they need. */
  readonly limits = new Map<string, Partial<ModelLimits>>()

  /** Starts one server for each name. */
  static async start(...instances: string[]): Promise<Bench> {
    const bench = new Bench()
    for (const instance of instances) bench.servers.set(instance, await startModelServer())
    return bench
  }

  async close(): Promise<void> {
    await Promise.all([...this.servers.values()].map((server) => server.close()))
  }

  server(instance = 'one'): ModelServer {
    const server = this.servers.get(instance)
    if (!server) throw new Error(`no instance ${instance}`)
    return server
  }

  async open(instance: string): Promise<ModelProvider> {
    this.opened.push(instance)
    const limits = this.limits.get(instance) ?? {}
    return createProvider({ type: 'openai-compatible', baseUrl: this.server(instance).url, instance, limits })
  }

  execute(call: Partial<FlowExecution> = {}, resources: Partial<FlowResources> = {}) {
    return executeFlow({ ...CALL, ...call }, { ...this.#resources(), ...resources })
  }

  async play(call: Partial<FlowExecution> = {}, resources: Partial<FlowResources> = {}): Promise<Played> {
    const running = this.execute(call, resources)
    const events: FlowEvent[] = []
    for (;;) {
      const { done, value } = await running.next()
      if (done) return { events, outcome: value }
      events.push(value)
    }
  }

  #resources(): FlowResources {
    return {
      openModel: (instance) => this.open(instance),
      priceOf: (_type, _model, usage) => (usage.input + usage.output) / 1_000,
      windowOf: () => undefined,
      tools: {
        toolBox: boxOf([]),
        services: {},
        owner: { tenant: DEFAULT_TENANT, scope: 'run' },
        workspace: () => '/workspaces/run',
        maxOutputChars: 1_000,
        canAct: async () => true,
        mayAct: () => true,
        onToolBug: (_name, cause) => void this.bugs.push(cause),
      },
      checker: { check: async (schema, value) => problemsOf(schema, value) },
      supportsStructuredOutput: async () => undefined,
      maxTurns: 4,
      signal: new AbortController().signal,
      now: () => Date.parse('2026-01-02T03:04:05.678Z'),
      onBug: (cause) => void this.bugs.push(cause),
    }
  }
}

/** Gives each test of a `describe` two instances, `one` and `two`. Fails a test in which a bug was reported. */
export function useBench(onOpened: (bench: Bench) => void): void {
  let bench: Bench
  beforeEach(async () => {
    bench = await Bench.start('one', 'two')
    onOpened(bench)
  })
  afterEach(async () => {
    await bench.close()
    expect(bench.bugs).to.deep.equal([])
  })
}

const CALL: FlowExecution = {
  traceId: TRACE_ID,
  flow: { name: 'review', version: 3, definition: definitionOf() },
  templates: { subAgents: new Map() },
  input: INPUT,
  route: { instance: 'one', model: 'm1' },
  fallback: null,
  memory: '',
}

/** Checks `required` only. */
function problemsOf(schema: JsonObject, value: unknown): SchemaProblem[] {
  const required = (schema['required'] ?? []) as string[]
  const own = Object(value) as JsonObject
  return required
    .filter((name) => !Object.hasOwn(own, name))
    .map((name) => ({ path: `/${name}`, message: 'is missing' }))
}

export const toolOf = (name: string, run: Tool['run'] = async () => succeed('done')): Tool => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object' },
  defaultPolicy: 'allow',
  describe: () => name,
  run,
})

export const boxOf = (tools: Tool[]): ToolBox => ({
  tools,
  find: (name) => tools.find((tool) => tool.name === name),
  policyOf: (name) => tools.find((tool) => tool.name === name)?.defaultPolicy ?? 'deny',
  problemWith: () => undefined as never, // Fits a synchronous and an asynchronous check.
})

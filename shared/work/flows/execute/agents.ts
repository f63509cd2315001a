import { join } from 'node:path'
import { MAX_TRIES } from '../../../agent/engine/answers/typed-answer.ts'
import type { Tools } from '../../../agent/engine/resources.ts'
import type { ItemAnswers } from '../../../agent/providers/batch/answered-calls.ts'
import type { Caller, ModelProvider, PriceOf, WindowOf } from '../../../agent/providers/port.ts'
import type { ReadFile } from '../../../agent/providers/shown-files.ts'
import type { ToolBox } from '../../../agent/tools/port.ts'
import type { RecordedCalls } from '../../../agent/tools/recorded-calls.ts'
import { onlyNamed } from '../../../agent/tools/unattended.ts'
import type { AttachedFile } from '../../../kernel/attachment.ts'
import { AppError, toAppError } from '../../../kernel/errors.ts'
import type { FlowEvent, FlowFailure, JsonObject, WarningEvent } from '../../../kernel/events.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { Flow, FlowRoute, FlowTemplates, SubAgentDefinition, TemplateValues } from '../port.ts'
import { type Agent, type AgentDeps, type AgentResult, runAgent } from './agent.ts'
import { CallRoutes } from './call-routes.ts'
import type { FlowLog } from './flow-log.ts'
import { invalidSubAgent, MAIN_AGENT, refusalOf } from './outcome.ts'
import { mainPrompts, subAgentPrompts } from './prompts.ts'
import type { Stop } from './stop.ts'
import { StructuredOutputs, type SupportsStructuredOutput } from './structured.ts'

/** One call of a flow, checked: the input is valid, the instances exist, the definition compiles. */
export type FlowExecution = {
  traceId: string
  flow: Pick<Flow, 'name' | 'version' | 'definition'>
  templates: FlowTemplates
  input: JsonObject
  route: FlowRoute
  fallback: FlowRoute | null
  /** The text of `{{.memory}}`; empty when there is none. */
  memory: string
  /** Whether it is repeated because its executor died. */
  isRecovered?: boolean
  /** The caller for its model calls. */
  caller?: Caller
  /** The answers of a vendor's batches to its calls. */
  answers?: ItemAnswers
  /** The stored results of its tool calls, and the store for further ones. */
  calls?: RecordedCalls
  /** Called before a tool changes something; the tool waits for it. Left out: that need not be recorded. */
  beforeAction?: (() => Promise<void>) | undefined
}

export type FlowResources = {
  /** Opens an instance of the tenant. Throws an `AppError` when the instance or its key is gone. */
  openModel(instance: string, agent: string): Promise<ModelProvider>
  priceOf: PriceOf
  windowOf: WindowOf
  /** All tools of the process, with policies that never ask a person (`unattended`). Each agent gets those that the flow names. */
  tools: Tools
  /** Finds the files that the input names, and reads them. Left out: the input names no files. */
  findFiles?: (() => Promise<AttachedFile[]>) | undefined
  readFile?: ReadFile | undefined
  checker: Pick<SchemaChecker, 'check'>
  supportsStructuredOutput: SupportsStructuredOutput
  /** The limit of each run of the engine. */
  maxTurns: number
  /** Aborted with a `RunErrorCode`. */
  signal: AbortSignal
  /** Epoch milliseconds. */
  now(): number
  /** Called for an error that is a bug; the outcome is `internal_error` then. */
  onBug(cause: unknown): void
  /** The limit of the whole execution; by default 30 minutes. */
  limitMs?: number
}

/** An execution in progress. */
export type Context = { resources: FlowResources; log: FlowLog; stop: Stop }

/** Runs the sub-agents of a flow at the same time, then its main agent. Never rejects: a bug is a failure too. */
export const runAgents = (call: FlowExecution, context: Context): Promise<AgentResult> =>
  settle(context, async () => {
    const { definition } = call.flow
    if (call.isRecovered) await context.log.warn(MAIN_AGENT, RECOVERED)
    await context.log.add(startedEvent(call, context.log.at))
    const deps = await depsOf(call, context)
    const values = { input: call.input, sub_outputs: {}, memory: call.memory }
    const subAgents = definition.sub_agents.map((own) => subAgentOf(own, call, { values, context }))
    const sub = await runSubAgents(subAgents, deps, context)
    if ('failure' in sub) return { kind: 'failed', ...sub }
    return runAgent(mainAgentOf(call, { values: { ...values, sub_outputs: sub.outputs }, context }), deps)
  })

/** Converts every error into a result. A refusal below 500 is not the fault of the request, because that was checked before. */
async function settle({ resources }: Context, work: () => Promise<AgentResult>): Promise<AgentResult> {
  try {
    return await work()
  } catch (cause) {
    const refusal = toAppError(cause)
    if (refusal.kind === 'internal') resources.onBug(cause)
    const error = refusal.status < 500 ? new AppError('upstream', refusal.message, { cause }) : refusal
    return { kind: 'failed', failure: refusalOf(error) }
  }
}

/** Tells the client that everything it has received so far is void. */
const RECOVERED: WarningEvent = {
  type: 'warning',
  code: 'run_recovered',
  message: 'the server of this run failed, and another one begins it anew',
  detail: { turn_number: 1, suggestion: 'Drop what has come of this run so far: it begins anew.' },
}

const startedEvent = ({ traceId, flow, route }: FlowExecution, at: string): FlowEvent => ({
  type: 'started',
  trace_id: traceId,
  flow_id: flow.name,
  flow_version: flow.version,
  provider_instance: route.instance,
  model: route.model,
  at,
})

async function depsOf(
  { route, fallback, caller, answers }: FlowExecution,
  { resources, log, stop }: Context,
): Promise<AgentDeps> {
  const { priceOf, windowOf, checker, maxTurns, readFile } = resources
  const opened = new Map<string, Promise<ModelProvider>>()
  return {
    routes: new CallRoutes(route, fallback),
    caller,
    files: await resources.findFiles?.(),
    structured: new StructuredOutputs(resources.supportsStructuredOutput),
    signal: stop.signal,
    log,
    priceOf,
    windowOf,
    checker,
    maxTurns,
    readFile,
    openModel(instance, agent) {
      const key = answers ? `${instance} ${agent}` : instance // With batch answers the
      // key contains the agent,
      // because the answers
      // belong to one agent.
      const provider = opened.get(key) ?? resources.openModel(instance, agent)
      opened.set(key, provider)
      return provider
    },
  }
}

type Setting = { values: TemplateValues; context: Context }

function subAgentOf(own: SubAgentDefinition, call: FlowExecution, { values, context }: Setting): Agent {
  const { tools } = context.resources
  const { system, user } = subAgentPrompts(own, call.templates, values)
  return {
    name: own.name,
    system,
    prompt: user,
    form: { name: own.name, schema: own.output_schema },
    own,
    tools: {
      ...tools,
      toolBox: toolsOf(call, own, tools),
      workspace: () => join(tools.workspace(), 'sub_agents', own.name),
    },
  }
}

/** The tools that the flow names for an agent. */
function toolsOf({ calls }: FlowExecution, { name, tools: names }: Named, { toolBox }: Tools): ToolBox {
  return onlyNamed(calls?.of(name, toolBox) ?? toolBox, names)
}

type Named = Pick<SubAgentDefinition, 'name' | 'tools'>

function mainAgentOf(call: FlowExecution, { values, context }: Setting): Agent {
  const { flow, templates } = call
  const { tools } = context.resources
  const { name, definition } = flow
  const { system, user } = mainPrompts({ name, definition, templates }, values)
  return {
    name: MAIN_AGENT,
    system,
    prompt: user,
    form: { name, schema: definition.output_schema },
    own: undefined,
    tools: { ...tools, toolBox: toolsOf(call, { name: MAIN_AGENT, tools: definition.tools }, tools) },
  }
}

type SubOutputs = { outputs: JsonObject } | { failure: FlowFailure }

/** Runs sub-agents at the same time (api.md "Named flows" 8). The first failure ends the others. */
async function runSubAgents(agents: readonly Agent[], deps: AgentDeps, context: Context): Promise<SubOutputs> {
  let failure: FlowFailure | undefined
  const outputs = agents.map(async (agent): Promise<[string, unknown]> => {
    const result = await settle(context, () => runAgent(agent, deps))
    if (result.kind === 'ok') return [agent.name, result.output]
    failure ??= failureOfSubAgent(agent, result)
    context.stop.end()
    return [agent.name, null]
  })
  const entries = await Promise.all(outputs)
  return failure ? { failure } : { outputs: Object.fromEntries(entries) }
}

const failureOfSubAgent = ({ name }: Agent, result: Exclude<AgentResult, { kind: 'ok' }>): FlowFailure =>
  result.kind === 'failed' ? result.failure : invalidSubAgent({ agent: name, instance: result.instance }, MAX_TRIES)

import { join } from 'node:path'
import { withSchema } from '../../../agent/engine/answers/typed-answer.ts'
import type { Models, Tools } from '../../../agent/engine/resources.ts'
import { runUnattended } from '../../../agent/engine/unattended-run.ts'
import { healthOf, passedOver } from '../../../agent/providers/failures/failover.ts'
import type {
  Caller,
  ModelProvider,
  ModelRoute,
  PriceOf,
  StructuredOutput,
  WindowOf,
} from '../../../agent/providers/port.ts'
import type { ReadFile } from '../../../agent/providers/shown-files.ts'
import type { ToolBox } from '../../../agent/tools/port.ts'
import type { RecordedCalls } from '../../../agent/tools/recorded-calls.ts'
import { onlyNamed } from '../../../agent/tools/unattended.ts'
import type { AttachedFile } from '../../../kernel/attachment.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { ErrorEvent, FlowFailure, OutputProblem } from '../../../kernel/events.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { Flow, FlowDefinition, FlowRoute, FlowTemplates, SubAgentDefinition, TemplateValues } from '../port.ts'
import { CallRoutes, isProviderFailure, StructuredOutputs } from './call-routes.ts'
import { type FlowLog, TurnReader } from './flow-log.ts'
import { failureOf, MAIN_AGENT, type Place } from './outcome.ts'

export type Agent = {
  /** In the events: `main` or the name of a sub-agent. */
  name: string
  system: string
  prompt: string
  form: StructuredOutput
  tools: Tools
  /** Its own instance and model, if it has them. */
  own: Pick<SubAgentDefinition, 'provider_instance' | 'model'> | undefined
}

/** The parts of an execution that every agent uses. */
export type AgentDeps = {
  routes: CallRoutes
  caller?: Caller | undefined
  /** Throws an `AppError` when the instance or its key is gone. */
  openModel(instance: string, agent: string): Promise<ModelProvider>
  log: FlowLog
  structured: StructuredOutputs
  checker: Pick<SchemaChecker, 'check'>
  signal: AbortSignal
  priceOf: PriceOf
  windowOf: WindowOf
  maxTurns: number
  /** The files of the input, which every agent reads. */
  files?: readonly AttachedFile[] | undefined
  readFile?: ReadFile | undefined
}

/** `text` is that of the last turn. */
type Ending =
  | { kind: 'ok'; output: unknown; text: string }
  | { kind: 'invalid'; text: string; problems: readonly OutputProblem[] }
  | Failed
type Failed = Pick<ErrorEvent, 'code' | 'error' | 'detail' | 'retry_after_secs'>

/** `instance` is the one that gave the answer. */
export type AgentResult =
  | { kind: 'ok'; output: unknown; text: string; instance: string }
  | { kind: 'invalid'; text: string; problems: readonly OutputProblem[]; instance: string }
  | { kind: 'failed'; failure: FlowFailure }

/**
 * Runs an agent to a checked output. When its provider fails and the call has a fallback, the agent starts again there (api.md
 * "Named flows" 6).
 */
export async function runAgent(agent: Agent, deps: AgentDeps): Promise<AgentResult> {
  const { routes, signal, log } = deps
  const { route, canSwitch } = routes.routeOf(agent.own)
  const skipped = canSwitch ? await passOver(route, agent, deps) : undefined
  const end = skipped ?? (await runOn(route, agent, deps))
  if (!('code' in end)) return { ...end, instance: route.instance }
  if (!canSwitch || signal.aborted || !isProviderFailure(end)) {
    return { kind: 'failed', failure: failureAt(end, { agent: agent.name, instance: route.instance }) }
  }
  const warning = routes.switchAfter(route, end)
  if (warning) await log.warn(agent.name, warning)
  return runAgent(agent, deps)
}

const failureAt = ({ code, error, retry_after_secs }: Failed, place: Place): FlowFailure => ({
  ...failureOf(code, error, place),
  ...(retry_after_secs !== undefined && { retry_after_secs }),
})

/** The reason if this route's model is not called: it rests, and the fallback does not (D56.2). */
async function passOver(route: FlowRoute, agent: Agent, deps: AgentDeps): Promise<Failed | undefined> {
  const restsAt = async ({ instance, model }: FlowRoute, isFallback: boolean) => {
    const provider = await open(instance, agent.name, deps)
    if ('code' in provider || provider.isAnswered?.()) return isFallback
    const health = healthOf({ provider, model })
    return isFallback ? health.rests(performance.now()) : health.isPassedOver(performance.now())
  }
  const { fallback } = deps.routes
  if (!fallback || !(await restsAt(route, false)) || (await restsAt(fallback, true))) return undefined
  return { code: 'provider_unavailable', error: passedOver(route.instance), detail: 'provider_skipped' }
}

/** Asks one model until the output is valid. */
async function runOn(route: FlowRoute, agent: Agent, deps: AgentDeps): Promise<Ending> {
  const provider = await open(route.instance, agent.name, deps)
  if ('code' in provider) return provider
  return converse(agent, { route, model: { provider, model: route.model, caller: deps.caller } }, deps)
}

/** An unusable key or a deleted instance counts as a failure of the provider. */
async function open(instance: string, agent: string, { openModel }: AgentDeps): Promise<ModelProvider | Failed> {
  try {
    return await openModel(instance, agent)
  } catch (cause) {
    if (!isGone(cause)) throw cause
    return { code: 'provider_auth', error: cause.message, detail: 'instance_unusable' }
  }
}

const KEY_CODES: ReadonlySet<string> = new Set(['secret_missing', 'secret_unreadable', 'master_key_missing'])

const isGone = (cause: unknown): cause is AppError =>
  cause instanceof AppError &&
  (cause.kind === 'not_found' || cause.kind === 'invalid_request' || KEY_CODES.has(cause.code ?? ''))

/** Runs an agent with one model to its checked output, over all its tries. */
async function converse(
  { name, system, prompt, form, tools }: Agent,
  { route, model }: { route: FlowRoute; model: ModelRoute },
  deps: AgentDeps,
): Promise<Ending> {
  const { checker, structured, maxTurns, signal, log, files, readFile } = deps
  const output = { ...form, checker, native: structured.of(route) }
  const reader = new TurnReader(name, log)
  const end = await runUnattended(
    { prompt, files, systemPrompt: system, maxTurns, output },
    { models: modelsOf(model, deps), tools, signal, readFile },
    (event) => reader.read(event),
  )
  const text = end.answer.texts.join('')
  if (!('failure' in end)) return { kind: 'ok', output: end.output, text }
  const { code, problems = [] } = end.failure
  return code === 'invalid_output' ? { kind: 'invalid', text, problems } : end.failure
}

function modelsOf(model: ModelRoute, { priceOf, windowOf }: AgentDeps): Models {
  const route = { primary: model, fallback: undefined }
  return { main: () => route, subAgents: () => route, summaries: () => route, priceOf, windowOf }
}

/** What the agents of a call are made of. */
type Setting = {
  call: { flow: Pick<Flow, 'name' | 'definition'>; templates: FlowTemplates; calls?: RecordedCalls }
  values: TemplateValues
  tools: Tools
}

export function subAgentOf(own: SubAgentDefinition, { call, values, tools }: Setting): Agent {
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
function toolsOf({ calls }: Setting['call'], { name, tools: names }: Named, { toolBox }: Tools): ToolBox {
  return onlyNamed(calls?.of(name, toolBox) ?? toolBox, names)
}

type Named = Pick<SubAgentDefinition, 'name' | 'tools'>

export function mainAgentOf({ call, values, tools }: Setting): Agent {
  const { flow, templates } = call
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

/** The texts with which an agent starts. */
export type Prompts = { system: string; user: string }

type MainAgent = { name: string; definition: FlowDefinition; templates: FlowTemplates }

/**
 * The prompts of the main agent (api.md "Flow definition"): the flow's templates. Without a template for the user's message it is
 * the JSON envelope of `input` and `sub_outputs`; without a system template, the system prompt names the flow and contains the memory.
 */
export function mainPrompts({ name, definition, templates }: MainAgent, values: TemplateValues): Prompts {
  const { system, user } = templates
  const task = system?.render(values) ?? defaultTask(name, { hasEnvelope: user === undefined, memory: values.memory })
  const { input, sub_outputs } = values
  return {
    system: withSchema(task, definition.output_schema),
    user: user?.render(values) ?? JSON.stringify({ input, sub_outputs }),
  }
}

/** The prompts of a sub-agent: its own one as the system prompt, and the flow's input. */
export function subAgentPrompts(
  { name, output_schema }: SubAgentDefinition,
  { subAgents }: FlowTemplates,
  values: TemplateValues,
): Prompts {
  const task = subAgents.get(name)?.render(values) ?? ''
  return { system: withSchema(task, output_schema), user: JSON.stringify({ input: values.input }) }
}

function defaultTask(name: string, { hasEnvelope, memory }: { hasEnvelope: boolean; memory: string }): string {
  const task = `You carry out the flow "${name}": you produce its output from its input.`
  const envelope = hasEnvelope
    ? " The user's message is a JSON object: `input` is the input of the flow, `sub_outputs` holds the outputs of its sub-agents by name."
    : ''
  return memory === '' ? task + envelope : `${task}${envelope}\n\n${memory}`
}

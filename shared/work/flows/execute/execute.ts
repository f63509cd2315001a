import { MAX_OUTPUT_CHARS } from '../../../agent/engine/answers/output.ts'
import { MAX_TRIES } from '../../../agent/engine/answers/typed-answer.ts'
import { EventQueue } from '../../../agent/engine/event-queue.ts'
import type { Tools } from '../../../agent/engine/resources.ts'
import type { ItemAnswers } from '../../../agent/providers/batch/answered-calls.ts'
import type { Caller, ModelProvider, PriceOf, WindowOf } from '../../../agent/providers/port.ts'
import type { ReadFile } from '../../../agent/providers/shown-files.ts'
import type { RecordedCalls } from '../../../agent/tools/recorded-calls.ts'
import { oneByOne } from '../../../kernel/async/batch.ts'
import type { AttachedFile } from '../../../kernel/attachment.ts'
import { AppError, toAppError } from '../../../kernel/errors.ts'
import type { FlowEvent, FlowFailure, JsonObject, RunErrorCode, Verdict, WarningEvent } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { DispatchEnd, DispatchOutput, Flow, FlowRoute, FlowTemplates } from '../port.ts'
import { type Agent, type AgentDeps, type AgentResult, mainAgentOf, runAgent, subAgentOf } from './agent.ts'
import { CallRoutes, StructuredOutputs, type SupportsStructuredOutput } from './call-routes.ts'
import { FlowLog } from './flow-log.ts'
import { failureOf, invalidSubAgent, MAIN_AGENT, refusalOf } from './outcome.ts'
import { Stop } from './stop.ts'

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
type Context = { resources: FlowResources; log: FlowLog; stop: Stop }

/** How an execution ended. The terminal event is made from it, after it is stored. */
export type FlowOutcome = Omit<DispatchEnd, 'status'> & DispatchOutput & { status: Verdict | 'error' }

const LIMIT_MS = 30 * 60_000
const MAX_QUEUED = 256

/**
 * Executes a flow (api.md "Named flows" 4 to 8): its sub-agents at the same time, then the main agent. Yields `started`, the turns
 * and the warnings, and returns the outcome; every failure is an outcome. Leaving the iteration ends all agents.
 */
export async function* executeFlow(
  call: FlowExecution,
  resources: FlowResources,
): AsyncGenerator<FlowEvent, FlowOutcome, undefined> {
  const events = new EventQueue<FlowEvent>(MAX_QUEUED)
  const log = new FlowLog({ send: (event) => events.send(event), now: resources.now })
  const stop = new Stop(resources.signal, resources.limitMs ?? LIMIT_MS)
  const ended = endOf(call, { resources, log, stop }).finally(() => events.close())
  try {
    yield* oneByOne(events)
    const end = await ended
    const { timeline, totals, artifacts } = log
    return { ...end, ...totals, timeline, ...(artifacts.length > 0 && { artifacts }) }
  } finally {
    stop.dispose()
    events.close()
    await ended
  }
}

type End = Pick<FlowOutcome, 'status' | 'output' | 'raw_output' | 'problems' | 'served_instance' | 'error'>

/** Never rejects. If the execution was stopped from outside, that is its failure, even if the agents report another one. */
async function endOf(call: FlowExecution, context: Context): Promise<End> {
  const { stop } = context
  const result = await runAgents(call, context)
  if (stop.cause !== undefined && result.kind === 'failed')
    return failed(failureOf(stop.cause, stopMessage(stop.cause)))
  if (result.kind === 'failed') return failed(result.failure)
  const { text, instance } = result
  const answered = { raw_output: truncate(text, MAX_OUTPUT_CHARS), served_instance: instance, error: null }
  if (result.kind === 'invalid')
    return { ...answered, status: 'invalid_output', output: null, problems: result.problems }
  return { ...answered, status: 'ok', output: result.output }
}

const failed = (error: FlowFailure): End => ({
  status: 'error',
  output: null,
  raw_output: '',
  served_instance: null,
  error,
})

const STOP_MESSAGE: Partial<Record<RunErrorCode, string>> = {
  cancelled: 'the run was cancelled',
  timeout: 'the flow did not end within its time limit',
  worker_draining: 'the server is shutting down: send the request again',
}

const stopMessage = (code: RunErrorCode): string => STOP_MESSAGE[code] ?? 'the run was ended'

/** Runs the sub-agents of a flow at the same time, then its main agent. Never rejects: a bug is a failure too. */
const runAgents = (call: FlowExecution, context: Context): Promise<AgentResult> =>
  settle(context, async () => {
    const { definition } = call.flow
    if (call.isRecovered) await context.log.warn(MAIN_AGENT, RECOVERED)
    await context.log.add(startedEvent(call, context.log.at))
    const deps = await depsOf(call, context)
    const { tools } = context.resources
    const values = { input: call.input, sub_outputs: {}, memory: call.memory }
    const subAgents = definition.sub_agents.map((own) => subAgentOf(own, { call, values, tools }))
    const sub = await runSubAgents(subAgents, deps, context)
    if ('failure' in sub) return { kind: 'failed', ...sub }
    return runAgent(mainAgentOf({ call, values: { ...values, sub_outputs: sub.outputs }, tools }), deps)
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
      // With batch answers the key contains the agent, because the answers belong to one agent.
      const key = answers ? `${instance} ${agent}` : instance
      const provider = opened.get(key) ?? resources.openModel(instance, agent)
      opened.set(key, provider)
      return provider
    },
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

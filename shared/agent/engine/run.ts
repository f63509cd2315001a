import {
  type AgentEvent,
  type DoneEvent,
  type ErrorEvent,
  errorEvent,
  type RunErrorCode,
  type WarningEvent,
} from '../../kernel/events.ts'
import { quoted } from '../../kernel/text.ts'
import { callModel, type ModelCall } from '../providers/failures/failover.ts'
import type {
  Failure,
  Message,
  ModelRoute,
  PriceOf,
  StructuredOutput,
  ToolResultBlock,
  Usage,
} from '../providers/port.ts'
import { type Context, createContext } from './context/context.ts'
import { Conversation } from './conversation.ts'
import type { Route, RunResources } from './resources.ts'
import type { RunProgress } from './run-progress.ts'
import { createStickyModels, type StickyModels } from './sticky-models.ts'
import {
  AgentTree,
  createSubAgents,
  type Emit,
  type EngineSubAgents,
  type Lineage,
  narrow,
  type SubAgentOptions,
} from './sub-agents.ts'
import { callTools, toolUseBlocks } from './tool-step.ts'
import { createToolsWarning } from './tools-warning.ts'
import { type Answer, readAnswer } from './turn.ts'
import {
  addSpent,
  addTurn,
  done,
  estimateUsage,
  startTotals,
  type Totals,
  turnEnd,
  wholeUsage,
  withTotals,
} from './usage.ts'

export type RunInput = {
  prompt: string
  /** The history that the run continues and adds to. */
  conversation: Conversation
  systemPrompt: string | undefined
  /** Facts from earlier conversations, which the model reads ahead of the history. */
  background: string | undefined
  maxTurns: number
  stopSequences: readonly string[]
  /** The form that the provider is asked to give each answer. */
  output?: StructuredOutput | undefined
  /** Sent to the client right behind the first `turn_start`. */
  warnings: readonly WarningEvent[]
  /** Keeps what another process needs to go on with the run, and tells what an earlier one has done of it. */
  progress?: RunProgress | undefined
}

/** The input of an agent that no client has asked: it continues nothing, unless a conversation is given. */
export type Task = Pick<RunInput, 'prompt' | 'systemPrompt' | 'maxTurns' | 'output'> &
  Partial<Pick<RunInput, 'conversation'>>

export const taskInput = ({ conversation = new Conversation(), ...task }: Task): RunInput => ({
  ...task,
  conversation,
  background: undefined,
  stopSequences: [],
  warnings: [],
})

/**
 * The engine's one loop: calls the model, makes its tool calls, and calls it again until it has answered (api.md "Events").
 * Yields exactly one terminal event, as the last one. Model and tool failures are events; a throw is a bug. `lineage` is set
 * when another agent started this run as its sub-agent.
 */
export async function* run(
  input: RunInput,
  given: RunResources,
  lineage?: Lineage,
): AsyncGenerator<AgentEvent, void, undefined> {
  const { conversation, progress } = input
  const models = createStickyModels(given.models)
  const resources = { ...given, models, ...(progress && { progress }) }
  const { signal } = resources
  const tree = progress?.tree ?? new AgentTree()
  const subAgentsFor = subAgentsOf(input, resources, { tree: lineage?.tree ?? tree, caller: lineage })
  const hasPrompt = progress?.start(signal, given.permissions.planMode) ?? false
  if (!hasPrompt) conversation.append({ role: 'user', text: input.prompt })
  const context = contextOf(input, resources, lineage?.tree ?? tree)
  const toolsWarning = createToolsWarning(resources.tools.toolBox)
  let totals = progress?.totals ?? startTotals()
  const spent = () => addSpent(totals, tree.spent.usage, tree.spent.costUsd)
  if (progress?.stopReason) return yield done(spent(), progress.stopReason)
  for (let turn = totals.turns + 1; turn <= input.maxTurns; turn++) {
    const first = models.main()
    const earlier = progress?.earlierStep(turn)
    yield { type: 'turn_start', turn_number: turn, model: earlier?.model ?? first.primary.model }
    if (turn === 1) yield* input.warnings
    const { answer, route } = yield* askModel(input, { first, earlier, context, resources })
    if (signal.aborted) return yield withTotals(abortEvent(signal), spent())
    if (answer.failure) return yield withTotals(failureEvent(answer.failure), spent())
    if (!earlier) progress?.beginStep(turn, route.model, answer)
    const { results, ending } = yield* callTools(answer.toolCalls, { ...resources, subAgentsFor })
    if (signal.aborted) return yield withTotals(abortEvent(signal), spent())

    yield* context.measure(answer.usage, route)
    yield* toolsWarning(route)
    const usage = wholeUsage(answer.usage, estimateUsage(context.tokens, answer.outputChars))
    conversation.append(...turnMessages(answer, results))
    const stopReason = stopReasonOf(answer, results)
    totals = yield* account({ turn, usage, route, stopReason }, { totals, progress, ...models })
    if (ending) return yield ending
    if (stopReason) return yield done(spent(), stopReason)
  }
  const outOfTurns = errorEvent('max_turns_exceeded', `the run did not end within ${input.maxTurns} turns`)
  yield withTotals(outOfTurns, spent())
}

/** A turn without tool calls is the last one. */
function stopReasonOf({ outcome }: Answer, results: readonly ToolResultBlock[]): DoneEvent['stop_reason'] | undefined {
  if (results.length > 0) return undefined
  return outcome === 'stopped' ? 'stop_sequence' : 'end_turn'
}

const failureEvent = ({ code, message, reason }: Failure): ErrorEvent => errorEvent(code, message, reason)

type Answered = { answer: Answer; route: ModelRoute }
type EarlierAnswer = ReturnType<RunProgress['earlierStep']>
type Asking = {
  first: Route
  earlier: EarlierAnswer
  context: Context
  resources: RunResources & { models: StickyModels }
}

/**
 * Calls the model for one turn, and once more with a shorter history when the provider found the first too long (D5.6). An answer that an
 * earlier process has got is not asked for again.
 */
async function* askModel(
  input: RunInput,
  { first, earlier, context, resources }: Asking,
): AsyncGenerator<AgentEvent, Answered, undefined> {
  if (earlier) return yield* repeatAnswer(earlier, first)
  yield* context.compactIfNeeded()
  const { models } = resources
  const options = { stopSequences: input.stopSequences, tools: resources.tools.toolBox }
  const ask = (route: Route) => readAnswer(callModel(modelCall(input, route, resources)), options)
  const answer = yield* ask(first)
  models.stayWith(answer.servedBy)
  if (!(yield* context.compactAfterRejection(answer))) return { answer, route: answer.servedBy ?? first.primary }
  const second = models.main()
  const shorter = yield* ask(second)
  models.stayWith(shorter.servedBy)
  return { answer: shorter, route: shorter.servedBy ?? second.primary }
}

/** The answer that another process got from the model, each block in one increment. */
function* repeatAnswer(
  { model, answer }: NonNullable<EarlierAnswer>,
  { primary, fallback }: Route,
): Generator<AgentEvent, Answered> {
  for (const block of answer.blocks) {
    if (block.type === 'tool_use' || block.text === '') continue
    const { type, text } = block
    yield { type: `${type}_delta`, text }
    yield { type, text }
  }
  return { answer, route: fallback?.model === model ? fallback : primary }
}

/** The summaries that compaction makes are no turns: their cost counts like the cost of sub-agents. */
function contextOf(input: RunInput, { models, tools, signal }: RunResources, tree: AgentTree): Context {
  const { conversation, systemPrompt, background } = input
  const onSpent = (usage: Usage, { provider, model }: ModelRoute) => {
    tree.spent = addSpent(tree.spent, usage, models.priceOf(provider, model, usage) ?? 0)
  }
  const fixed = { systemPrompt, background, tools: tools.toolBox.tools }
  return createContext({ conversation, fixed, models, signal, onSpent })
}

type Family = { tree: AgentTree; caller: Lineage | undefined }

/** A sub-agent is a run of this same loop, with a fresh history and a narrowed set of its caller's tools (D5.3). */
function subAgentsOf({ maxTurns }: RunInput, resources: RunResources, { tree, caller }: Family) {
  const { models, tools } = resources
  const launch: SubAgentOptions['launch'] = ({ prompt, system = SUB_AGENT, tools: names }, lineage, progress) => {
    const toolBox = narrow(tools.toolBox, lineage.depth, names)
    return run(
      taskInput({ prompt, systemPrompt: system, maxTurns }),
      { ...resources, models: { ...models, main: models.subAgents }, tools: { ...tools, toolBox }, progress },
      lineage,
    )
  }
  const common = { tree, caller, toolBox: tools.toolBox, launch }
  return (emit: Emit): EngineSubAgents =>
    createSubAgents({ ...common, model: models.subAgents().primary.model, emit: caller?.emit ?? emit })
}

const SUB_AGENT =
  'You are a sub-agent: another agent has given you one task. Carry it out with your tools; your last message is all that it reads.'

function modelCall(input: RunInput, route: Route, { tools, signal }: RunResources): ModelCall {
  const { systemPrompt: system, background, conversation, stopSequences, output } = input
  const messages =
    background === undefined ? conversation.messages : [userMessage(background), ...conversation.messages]
  const request = { system, messages, tools: tools.toolBox.tools, stopSequences, output }
  return { ...route, request, signal }
}

const userMessage = (text: string): Message => ({ role: 'user', text })

function turnMessages({ blocks, toolCalls }: Answer, results: ToolResultBlock[]): Message[] {
  const messages: Message[] = []
  const answered = [...blocks, ...toolUseBlocks(toolCalls)]
  if (answered.length > 0) messages.push({ role: 'assistant', blocks: answered })
  if (results.length > 0) messages.push({ role: 'tool', results })
  return messages
}

type EndedTurn = { turn: number; usage: Usage; route: ModelRoute; stopReason: DoneEvent['stop_reason'] | undefined }

/** Yields the turn's `turn_end` and adds its cost up. The first turn of a model without a price carries its warning (D4.10). */
async function* account(
  { turn, usage, route, stopReason }: EndedTurn,
  { totals, progress, priceOf }: { totals: Totals; progress: RunProgress | undefined; priceOf: PriceOf },
): AsyncGenerator<AgentEvent, Totals, undefined> {
  const { provider, model } = route
  const price = priceOf(provider, model, usage)
  if (price === undefined && !totals.unpriced.has(model)) yield priceUnknown(model)
  const after = addTurn(totals, usage, { model, price })
  progress?.endTurn(after, stopReason)
  yield turnEnd(turn, usage, price ?? 0)
  return after
}

const priceUnknown = (model: string): AgentEvent => ({
  type: 'warning',
  code: 'price_unknown',
  message: `the price of ${quoted(model)} is not known: its cost is reported as 0`,
  detail: { model, suggestion: 'Set MODEL_PRICES, or `prices` of the instance.' },
})

const ABORT_MESSAGE: Partial<Record<RunErrorCode, string>> = {
  cancelled: 'the run was cancelled',
  session_deleted: 'the session was deleted',
  worker_draining: 'the server is shutting down',
  worker_lost: 'the worker that ran this was lost',
}

/** The terminal event of a run whose signal was aborted. */
export function abortEvent({ reason }: AbortSignal): ErrorEvent {
  const code = reason as RunErrorCode
  return errorEvent(code, ABORT_MESSAGE[code] ?? 'the run was ended')
}

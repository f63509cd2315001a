import type { Batched } from '../../kernel/async/batch.ts'
import { FlatIteration, type PassingGenerator } from '../../kernel/async/flat-iteration.ts'
import {
  type AgentEvent,
  type DoneEvent,
  type ErrorEvent,
  errorEvent,
  type PlanQueuedEvent,
  type RunErrorCode,
} from '../../kernel/events.ts'
import type { Failure, Message, ModelRoute, ToolResultBlock } from '../providers/port.ts'
import { Account, AgentTree } from './account.ts'
import { type Answered, askModel, userMessage } from './answers/ask-model.ts'
import { correctionWarning, lastBlocks, lastEvents, TypedAnswer } from './answers/typed-answer.ts'
import { toolsWithFiles } from './attached-files.ts'
import { withOwnIds } from './client-calls.ts'
import { type Context, createContext } from './context/context.ts'
import type { Conversation } from './conversation.ts'
import { Steering, steerMessage } from './messages/steering.ts'
import { modelsOfSubAgent, type RunResources } from './resources.ts'
import { needsOf, promptMessage, type RunInput, taskInput, withServers } from './run-input.ts'
import { createStickyModels, type StickyModels } from './sticky-models.ts'
import {
  createSubAgents,
  type Emit,
  type EngineSubAgents,
  type Lineage,
  narrow,
  type SubAgentOptions,
} from './sub-agents.ts'
import { callTools, NO_CALLS, type ToolStep, toolUseBlocks } from './tool-step.ts'
import { createToolsWarning } from './tools-warning.ts'
import type { Answer } from './turn.ts'
import { withTotals } from './usage.ts'

/**
 * The engine's one loop: calls the model, makes its tool calls, and calls it again until it has answered (api.md "Events").
 * Yields exactly one terminal event, as the last one. Events of one read of the model's answer, or of the end of a turn, are yielded together,
 * because each step of an async generator costs several promises. Model and tool failures are events; only a bug throws, after the terminal event.
 * `lineage` is set when another agent started this run as its sub-agent.
 */
export const run = (input: RunInput, resources: RunResources, lineage?: Lineage): RunEvents =>
  new FlatIteration(turnsOf(input, resources, lineage))

export type RunEvents = AsyncIterableIterator<Batched<AgentEvent>, void, undefined>

async function* turnsOf(
  givenInput: RunInput,
  given: RunResources,
  lineage: Lineage | undefined,
): PassingGenerator<Batched<AgentEvent>, void> {
  const { toolBox } = given.tools
  if (toolBox.ready) await toolBox.ready // Waits, for a limited time, for MCP servers that are still starting.
  const input = withServers(givenInput, toolBox)
  const { agent, subAgentsFor, end } = agentOf(input, given, lineage)
  const { account, resources } = agent
  const { conversation, progress } = input
  try {
    if (progress?.stopReason) return yield* repeatEnd(conversation, agent, progress.stopReason)
    for (let turn = account.turns + 1; turn <= maxTurnsOf(input, agent); turn++) {
      const first = resources.models.main()
      const earlier = progress?.earlierStep(turn)
      yield { type: 'turn_start', turn_number: turn, model: earlier?.model ?? first.primary.model }
      const told = [...(turn === 1 ? input.warnings : []), ...steer(conversation, agent, { turn, earlier })]
      if (told.length > 0) yield told
      const { answer, route } = yield* askModel(input, { ...agent, first, earlier })
      if (resources.signal.aborted) return yield end(abortEvent(resources.signal))
      if (answer.failure) return yield end(failureEvent(answer.failure))
      if (!earlier) beginStep(input, agent, { turn, answer, route })
      const hasCalls = answer.toolCalls.length > 0
      const step = hasCalls ? yield* callTools(answer.toolCalls, { ...resources, subAgentsFor }) : NO_CALLS
      if (resources.signal.aborted) await account.settled()
      if (resources.signal.aborted) return yield end(abortEvent(resources.signal))

      const { isOver, events } = await endTurn(input, agent, { answer, step, route })
      yield events
      if (step.ending) return yield end(step.ending)
      if (isOver) return
    }
    yield end(outOfTurns(input.maxTurns))
  } catch (cause) {
    yield end(errorEvent('internal', 'internal error'))
    throw cause
  }
}

/** Makes the last event of a run that ends before its answer is complete. Texts that its model could no longer read are added to the history. */
const endsOf =
  ({ account, steering, resources: { signal } }: Agent, conversation: Conversation) =>
  (event: ErrorEvent | PlanQueuedEvent) => {
    conversation.append(...steering.leave(signal, account.turns + 1))
    return withTotals(event, account.spent)
  }

/** A running agent. `typed` is `undefined` if it answers with text. */
type Agent = {
  account: Account
  context: Context
  toolsWarning: ReturnType<typeof createToolsWarning>
  typed: TypedAnswer | undefined
  steering: Steering
  resources: RunResources & { models: StickyModels }
}

/** A correction, or a text that a person has sent, allows one more turn (D41.2, D49). */
const maxTurnsOf = ({ maxTurns }: RunInput, { typed, steering }: Agent): number =>
  maxTurns + (typed?.corrections ?? 0) + steering.turnCount

type SteeredTurn = { turn: number; earlier: object | undefined }

/**
 * Adds the texts that people have sent to the history, so that the model reads them before it answers. A repeated turn
 * shows the texts that the history already has.
 */
function steer(conversation: Conversation, { steering }: Agent, { turn, earlier }: SteeredTurn): AgentEvent[] {
  const known = steering.takenIn(turn)
  const news = earlier ? [] : steering.take(turn)
  if (news.length > 0) conversation.append(...news.map(steerMessage))
  return [...known, ...news].map((each) => ({ type: 'steered', ...each }))
}

const outOfTurns = (maxTurns: number): ErrorEvent =>
  errorEvent('max_turns_exceeded', `the run did not end within ${maxTurns} turns`)

/** Begins or continues the run. */
function agentOf(input: RunInput, given: RunResources, lineage: Lineage | undefined) {
  const { conversation, progress } = input
  const models = createStickyModels(given.models, () => needsOf(input, conversation.messages, given.tools.toolBox))
  const tools = toolsWithFiles(given.tools, { messages: () => conversation.messages, readFile: given.readFile })
  const resources = { ...given, models, tools, ...(progress && { progress }) }
  const tree = progress?.tree ?? new AgentTree()
  const root = lineage?.tree ?? tree
  const account = new Account({ tree, root, priceOf: models.priceOf, progress })
  const hasPrompt = progress?.start(resources.signal, given.permissions.planMode) ?? false
  const continues = input.prompt === '' && !input.files?.length && conversation.messages.at(-1)?.role === 'tool'
  if (!hasPrompt && !continues) conversation.append(promptMessage(input))
  const typed = input.output && new TypedAnswer(input.output, progress?.corrections)
  const { steering = new Steering() } = given
  const toolsWarning = createToolsWarning(tools.toolBox)
  const context = contextOf(input, resources, account)
  const agent: Agent = { account, context, toolsWarning, typed, steering, resources }
  const subAgentsFor = subAgentsOf(input, resources, { tree: root, caller: lineage })
  return { agent, subAgentsFor, end: endsOf(agent, conversation) }
}

/** Called when the model has answered and its calls come next. */
function beginStep(
  { conversation, progress }: RunInput,
  { account, resources }: Agent,
  { turn, answer, route }: Answered & { turn: number },
): void {
  answer.toolCalls = withOwnIds(answer.toolCalls, { ...resources, messages: conversation.messages })
  progress?.beginStep(turn, route.model, { ...answer, spent: account.turn })
}

type Turn = { answer: Answer; step: ToolStep; route: ModelRoute }
/** `isOver`: the events are the last ones of the run. */
type TurnEnd = { isOver: boolean; events: AgentEvent[] }

/**
 * Adds a turn to the history, with the correction that the agent needs, if any. The run continues if its answer does not fit the required
 * format, or a person has sent a text meanwhile. Nothing is added before the answer is checked, because another process may then take over the
 * run.
 */
async function endTurn(
  { conversation, progress }: RunInput,
  { account, context, toolsWarning, typed, steering }: Agent,
  { answer, step: { results, isHandedOver, ending }, route }: Turn,
): Promise<TurnEnd> {
  const notes = [...context.measure(answer.usage, route), ...toolsWarning(route)]
  const given = stopReasonOf(answer, results)
  const checked = given && !isHandedOver && !steering.isWaiting ? await typed?.check(answer.blocks) : undefined
  conversation.append(...turnMessages(answer, results))
  if (checked?.kind !== 'correct') {
    const stopReason = given && (steering.close() || isHandedOver) ? given : undefined
    const events = [...notes, ...account.endTurn(route, stopReason)]
    if (!stopReason || ending) return { isOver: false, events }
    return { isOver: true, events: [...events, ...lastEvents(checked, account.spent, stopReason)] }
  }
  conversation.append(userMessage(checked.prompt))
  progress?.noteCorrection()
  const events = [...notes, ...account.endTurn(route, undefined), correctionWarning(checked.problems)]
  return { isOver: false, events }
}

/** Yields the end of a run whose last turn another process has completed. */
async function* repeatEnd(
  { messages }: Conversation,
  { account, typed }: Agent,
  stopReason: DoneEvent['stop_reason'],
): AsyncGenerator<AgentEvent, void, undefined> {
  yield* lastEvents(await typed?.check(lastBlocks(messages)), account.spent, stopReason)
}

/** A turn without tool calls is the last one. */
function stopReasonOf({ outcome }: Answer, results: readonly ToolResultBlock[]): DoneEvent['stop_reason'] | undefined {
  if (results.length > 0) return undefined
  return outcome === 'stopped' ? 'stop_sequence' : 'end_turn'
}

function failureEvent({ code, message, reason, retryAfterMs }: Failure): ErrorEvent {
  const hasTime = code === 'budget_exhausted' && retryAfterMs !== undefined
  return { ...errorEvent(code, message, reason), ...(hasTime && { retry_after_secs: Math.ceil(retryAfterMs / 1_000) }) }
}

function contextOf(input: RunInput, { models, tools, signal }: RunResources, account: Account): Context {
  const { conversation, systemPrompt, background } = input
  const fixed = { systemPrompt, background, tools: tools.toolBox.tools }
  return createContext({ conversation, fixed, models, signal, account })
}

type Family = { tree: AgentTree; caller: Lineage | undefined }

/** A sub-agent is a run of this same loop, with a fresh history and a narrowed set of its caller's tools (D5.3). */
function subAgentsOf({ maxTurns }: RunInput, resources: RunResources, { tree, caller }: Family) {
  const { models, tools } = resources
  const launch: SubAgentOptions['launch'] = ({ prompt, system = SUB_AGENT, tools: names }, lineage, progress) => {
    const toolBox = narrow(tools.toolBox, lineage.depth, names)
    return run(
      taskInput({ prompt, systemPrompt: system, maxTurns }),
      {
        ...resources,
        models: modelsOfSubAgent(models),
        tools: { ...tools, toolBox },
        progress,
        steering: undefined,
      },
      lineage,
    )
  }
  const onBug = (cause: unknown) => tools.onToolBug('sub-agent', cause)
  const common = { tree, caller, toolBox: tools.toolBox, launch, onBug }
  return (emit: Emit): EngineSubAgents =>
    createSubAgents({ ...common, model: models.subAgents().primary.model, emit: caller?.emit ?? emit })
}

const SUB_AGENT =
  'You are a sub-agent: another agent has given you one task. Carry it out with your tools; your last message is all that it reads.'

function turnMessages({ blocks, toolCalls }: Answer, results: ToolResultBlock[]): Message[] {
  const messages: Message[] = []
  const answered = [...blocks, ...toolUseBlocks(toolCalls)]
  if (answered.length > 0) messages.push({ role: 'assistant', blocks: answered })
  if (results.length > 0) messages.push({ role: 'tool', results })
  return messages
}

const ABORT_MESSAGE: Partial<Record<RunErrorCode, string>> = {
  cancelled: 'the run was cancelled',
  session_deleted: 'the session was deleted',
  worker_draining: 'the server is shutting down',
  worker_lost: 'the worker that ran this was lost',
  timeout: 'the run did not end by its deadline',
}

/** The terminal event of a run whose signal was aborted. */
export function abortEvent({ reason }: AbortSignal): ErrorEvent {
  const code = reason as RunErrorCode
  return errorEvent(code, ABORT_MESSAGE[code] ?? 'the run was ended')
}

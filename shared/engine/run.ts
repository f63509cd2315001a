import { type AgentEvent, errorEvent, type RunErrorCode, type WarningEvent } from '../events.ts'
import { callModel, type ModelCall } from '../providers/failures/failover.ts'
import type { Message, ModelRoute, PriceOf, ToolResultBlock, Usage, WindowOf } from '../providers/port.ts'
import type { AgentTask } from '../tools/port.ts'
import { type Context, createContext } from './context/context.ts'
import { Conversation } from './conversation.ts'
import { AgentTree, createSubAgents, type Emit, type Lineage, narrow } from './sub-agents.ts'
import { callTools, type ToolStepDeps, toolUseBlocks } from './tool-step.ts'
import { type Answer, readAnswer } from './turn.ts'
import { addSpent, addTurn, done, estimateUsage, startTotals, type Totals, turnEnd } from './usage.ts'

export type EngineInput = {
  prompt: string
  systemPrompt?: string
  /** What is known from before, for the model to read ahead of the history. */
  background?: string
  maxTurns: number
  stopSequences: readonly string[]
  /** Told to the client behind the first `turn_start`. */
  warnings: readonly WarningEvent[]
}

export type EngineDeps = Omit<ToolStepDeps, 'agentsFor'> & {
  /** The agent that started this run as its sub-agent. */
  lineage?: Lineage
  primary: ModelRoute
  fallback?: ModelRoute
  priceOf: PriceOf
  /** Missing: that a context is too long is learnt from the provider alone (D5.6). */
  windowOf?: WindowOf
  conversation: Conversation
}

/**
 * The engine's one loop: asks the model, makes its tool calls, and asks again until it has answered (api.md "Events").
 * Yields exactly one terminal event, as the last one. Model and tool failures are events; a throw is a bug. The reason that
 * `signal` is aborted with is the `RunErrorCode` of the terminal event.
 */
export async function* run(input: EngineInput, deps: EngineDeps): AsyncGenerator<AgentEvent, void, undefined> {
  const { conversation, signal } = deps
  const tree = new AgentTree()
  const agentsFor = subAgentsOf(input, deps, tree)
  conversation.append({ role: 'user', text: input.prompt })
  const context = contextOf(input, deps, deps.lineage?.tree ?? tree)
  let totals = startTotals()
  for (let turn = 1; turn <= input.maxTurns; turn++) {
    yield { type: 'turn_start', turn_number: turn, model: deps.primary.model }
    if (turn === 1) yield* input.warnings
    yield* context.fit()
    let answer = yield* readAnswer(callModel(modelCall(input, deps)), input.stopSequences)
    if (yield* context.refit(answer)) {
      answer = yield* readAnswer(callModel(modelCall(input, deps)), input.stopSequences)
    }
    if (signal.aborted) return yield abortEvent(signal)
    if (answer.failure) return yield errorEvent(answer.failure.code, answer.failure.message, answer.failure.reason)
    const { results, ending } = yield* callTools(answer.toolCalls, { ...deps, agentsFor })
    if (signal.aborted) return yield abortEvent(signal)

    context.measure(answer.usage)
    const usage = answer.usage ?? estimateUsage(context.tokens, answer.outputChars)
    conversation.append(...turnMessages(answer, results))
    totals = yield* account(turn, { usage, route: answer.servedBy ?? deps.primary }, { totals, priceOf: deps.priceOf })
    if (ending) return yield ending
    if (results.length > 0) continue
    const { usage: inAll, costUsd } = tree.spent
    return yield done(addSpent(totals, inAll, costUsd), answer.outcome === 'stopped' ? 'stop_sequence' : 'end_turn')
  }
  yield errorEvent('max_turns_exceeded', `the run did not end within ${input.maxTurns} turns`)
}

/** Summaries are no turns: what they cost is spent on the run like what its sub-agents cost. */
function contextOf({ systemPrompt, background }: EngineInput, deps: EngineDeps, tree: AgentTree): Context {
  const { conversation, primary, fallback, signal, toolBox, priceOf, windowOf = () => undefined } = deps
  const fixed = {
    ...(systemPrompt !== undefined && { system: systemPrompt }),
    ...(background !== undefined && { background }),
    tools: toolBox.tools,
  }
  const onSpent = (usage: Usage, { provider, model }: ModelRoute) => {
    tree.spent = addSpent(tree.spent, usage, priceOf(provider.type, model, usage) ?? 0)
  }
  return createContext({
    conversation,
    fixed,
    route: { primary, ...(fallback && { fallback }), signal },
    windowOf,
    onSpent,
  })
}

/** A sub-agent is a run of this same loop, with a fresh history and what is left of its caller's tools (D5.3). */
function subAgentsOf(input: EngineInput, deps: EngineDeps, tree: AgentTree) {
  const { lineage: caller, primary, toolBox } = deps
  const launch = ({ prompt, system = SUB_AGENT, tools }: AgentTask, lineage: Lineage) =>
    run(
      { prompt, systemPrompt: system, maxTurns: input.maxTurns, stopSequences: [], warnings: [] },
      { ...deps, lineage, conversation: new Conversation(), toolBox: narrow(toolBox, lineage.depth, tools) },
    )
  const common = { tree: caller?.tree ?? tree, model: primary.model, toolBox, launch, ...(caller && { caller }) }
  return (emit: Emit) => createSubAgents({ ...common, emit: caller?.emit ?? emit })
}

const SUB_AGENT =
  'You are a sub-agent: another agent has given you one task. Carry it out with your tools; your last message is all that it reads.'

function modelCall({ systemPrompt, background, stopSequences }: EngineInput, deps: EngineDeps): ModelCall {
  const { primary, fallback, conversation, toolBox, signal } = deps
  const request = {
    ...(systemPrompt !== undefined && { system: systemPrompt }),
    messages: background === undefined ? conversation.messages : [userText(background), ...conversation.messages],
    tools: toolBox.tools,
    stopSequences,
  }
  return { primary, ...(fallback && { fallback }), request, signal }
}

const userText = (text: string): Message => ({ role: 'user', text })

function turnMessages({ blocks, toolCalls }: Answer, results: ToolResultBlock[]): Message[] {
  const said = [...blocks, ...toolUseBlocks(toolCalls)]
  return [
    ...(said.length > 0 ? [{ role: 'assistant' as const, blocks: said }] : []),
    ...(results.length > 0 ? [{ role: 'tool' as const, results }] : []),
  ]
}

/** Tells what a turn cost and adds it up; the first turn whose price is not known carries the run's one warning (D4.10). */
async function* account(
  turn: number,
  { usage, route }: { usage: Usage; route: ModelRoute },
  { totals, priceOf }: { totals: Totals; priceOf: PriceOf },
): AsyncGenerator<AgentEvent, Totals, undefined> {
  const price = priceOf(route.provider.type, route.model, usage)
  if (price === undefined && !totals.isPriceUnknown) yield priceUnknown(route.model)
  yield turnEnd(turn, usage, price ?? 0)
  return addTurn(totals, usage, price)
}

const priceUnknown = (model: string): AgentEvent => ({
  type: 'warning',
  code: 'price_unknown',
  message: `the price of ${model} is not known: its cost is reported as 0`,
  detail: { model, suggestion: 'Set MODEL_PRICES.' },
})

const ABORT_MESSAGE: Partial<Record<RunErrorCode, string>> = {
  cancelled: 'the run was cancelled',
  session_deleted: 'the session was deleted',
  worker_draining: 'the server is shutting down',
  worker_lost: 'the worker that ran this was lost',
}

/** The terminal event of a run whose signal was aborted. */
export function abortEvent({ reason }: AbortSignal): AgentEvent {
  const code = reason as RunErrorCode
  return errorEvent(code, ABORT_MESSAGE[code] ?? 'the run was ended')
}

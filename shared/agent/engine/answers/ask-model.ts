import type { Batched } from '../../../kernel/async/batch.ts'
import { type FlatGenerator, inPlace, type Nested } from '../../../kernel/async/flat-iteration.ts'
import type { AgentEvent } from '../../../kernel/events.ts'
import { callModel, type ModelCall } from '../../providers/failures/failover.ts'
import type { Message, ModelChoices, ModelRoute, StructuredOutput } from '../../providers/port.ts'
import type { Account } from '../account.ts'
import type { Context } from '../context/context.ts'
import type { Conversation } from '../conversation.ts'
import type { Route, RunResources } from '../resources.ts'
import type { RunProgress } from '../run-progress.ts'
import type { StickyModels } from '../sticky-models.ts'
import { type Answer, AnswerEvents } from '../turn.ts'
import type { TypedAnswer } from './typed-answer.ts'

/** The parts of a run that a model call needs. */
export type Asked = {
  /** The history that the run continues and adds to. */
  conversation: Conversation
  systemPrompt: string | undefined
  /** Facts from earlier conversations, which the model reads before the history. */
  background: string | undefined
  stopSequences: readonly string[]
  /** Options of the run's own model calls. A tool can be required for the first answer only. */
  choices?: ModelChoices | undefined
}

export type Answered = { answer: Answer; route: ModelRoute }
type EarlierAnswer = ReturnType<RunProgress['earlierStep']>
type Asking = {
  first: Route
  earlier: EarlierAnswer
  context: Context
  account: Account
  /** `undefined` for a text answer. */
  typed: TypedAnswer | undefined
  resources: RunResources & { models: StickyModels }
}

/**
 * Calls the model for one turn, and once more with a shorter history when the provider found the first too long (D5.6). An answer that an
 * earlier process has received is reused.
 */
export async function* askModel(
  input: Asked,
  { first, earlier, context, account, typed, resources }: Asking,
): FlatGenerator<Batched<AgentEvent>, Answered, Answer> {
  if (earlier) return yield* repeatAnswer(earlier, { first, account })
  const compaction = context.compactIfNeeded()
  if (compaction) yield* compaction
  const { models } = resources
  const options = { stopSequences: input.stopSequences, tools: resources.tools.toolBox }
  const { choices: given } = input
  const isForAll = account.turns === 0 || given?.toolChoice === 'none'
  const choices = given && !isForAll ? { ...given, toolChoice: undefined } : given
  const askFor = (output: StructuredOutput | undefined, route: Route) => {
    const call = modelCall({ ...input, choices, output }, route, resources)
    return new AnswerEvents(callModel(call), options, account.turnCall(call))
  }
  const ask = (route: Route): Nested<Batched<AgentEvent>, Answer> =>
    typed ? typed.ask((output) => askFor(output, route), route.primary) : askFor(undefined, route)
  const answer = yield inPlace(ask(first))
  models.stayWith(answer.servedBy)
  const shortening = context.compactAfterRejection(answer)
  if (!shortening || !(yield* shortening)) return { answer, route: answer.servedBy ?? first.primary }
  const second = models.main()
  const shorter = yield inPlace(ask(second))
  models.stayWith(shorter.servedBy)
  return { answer: shorter, route: shorter.servedBy ?? second.primary }
}

/** Repeats the answer that another process received from the model; each block is one delta. */
function* repeatAnswer(
  { model, answer }: NonNullable<EarlierAnswer>,
  { first: { primary, fallback }, account }: Pick<Asking, 'first' | 'account'>,
): Generator<AgentEvent, Answered> {
  for (const block of answer.blocks) {
    if (block.type === 'tool_use' || block.text === '') continue
    const { type, text } = block
    yield { type: `${type}_delta`, text }
    yield { type, text }
  }
  const route = fallback?.model === model ? fallback : primary
  account.resumeTurn(answer, route)
  return { answer, route }
}

type FormedAsk = Asked & { output: StructuredOutput | undefined }

function modelCall(input: FormedAsk, route: Route, { tools, signal, readFile }: RunResources): ModelCall {
  const { systemPrompt: system, background, conversation, stopSequences, output, choices } = input
  const messages =
    background === undefined ? conversation.messages : [userMessage(background), ...conversation.messages]
  const request = { system, messages, tools: tools.toolBox.tools, stopSequences, output, choices }
  return { ...route, request, signal, readFile }
}

export const userMessage = (text: string): Message => ({ role: 'user', text })

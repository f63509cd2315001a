import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { ModelOptions } from '../../../kernel/model-options.ts'
import { hasAttachments, withoutAttachments } from '../attachments.ts'
import { CallWatch } from '../call-watch.ts'
import { chosenOptions } from '../choices.ts'
import { classifyFailure, connectionFailure } from '../failures/classify.ts'
import {
  abortedAnswer,
  breachFailure,
  contentFiltered,
  emptyAnswer,
  type FailedCall,
  mayBeEmpty,
  truncatedAnswer,
  unreadableAnswer,
} from '../failures/failures.ts'
import { countedIn } from '../flex.ts'
import type { ModelLimits } from '../limits.ts'
import type { Failure, ModelPart, ModelRequest } from '../port.ts'
import type { LeftOut, OptionalPart } from '../unsupported-options.ts'
import { PartReader, toUsage } from './parts.ts'
import { toCallOptions } from './prompt.ts'
import type { Vendor } from './vendors.ts'

export type Turn = {
  request: ModelRequest
  signal: AbortSignal
  call: FailedCall
  model: LanguageModelV4
  vendor: Vendor
  limits: ModelLimits
  options: ModelOptions
  leftOut: LeftOut
  /** The turn adds its watch here, by the signal that its request carries. */
  watches: WeakMap<AbortSignal, CallWatch>
}

type StartPart = Extract<LanguageModelV4StreamPart, { type: 'stream-start' }>
type FinishPart = Extract<LanguageModelV4StreamPart, { type: 'finish' }>

/** One model call. Leaving the iteration at any point closes the connection. */
export async function* streamTurn(turn: Turn): AsyncGenerator<ModelPart, void, undefined> {
  const { signal, vendor, limits, watches } = turn
  const watch = new CallWatch(limits, signal)
  watch.onTold = turn.request.onTold
  const answer = new PartReader(vendor)
  let finish: FinishPart | undefined
  let failure: Failure | undefined
  watches.set(watch.signal, watch)
  try {
    const reader = (await openStream(turn, watch)).getReader()
    while (!failure && !signal.aborted) {
      const { done, value: part } = await reader.read()
      if (done) break
      if (part.type === 'stream-start') noteUnsupported(part, turn)
      if (part.type === 'finish') {
        finish ??= part
        watch.expectEnd()
      }
      const isError = part.type === 'error' && !finish && !vendor.isIgnorable?.(part.error)
      if (isError) failure = toFailure(part.error, watch, turn)
      for (const piece of answer.read(part)) yield piece // Not `yield*`: it adds a promise to every delta.
    }
  } catch (error) {
    // After the finish part the answer is complete, so an error of the connection no longer matters.
    if (!finish && !signal.aborted) failure = toFailure(error, watch, turn)
  } finally {
    watch.close()
  }
  if (signal.aborted) return
  yield* failure ? [{ type: 'failure' as const, failure }] : lastParts(finish, answer, turn)
}

/** Sends the request, and sends it again without an option that the model refuses. */
async function openStream(turn: Turn, watch: CallWatch): Promise<ReadableStream<LanguageModelV4StreamPart>> {
  const { request, signal, model, vendor, leftOut } = turn
  for (;;) {
    const options = takenOptions(turn)
    const messages = takenMessages(turn)
    try {
      const tools = leftOut.takenTools(request)
      const choices = leftOut.has(request.model, 'tool_choice') ? undefined : request.choices
      const callOptions = toCallOptions({ ...request, choices, messages, tools }, vendor, options)
      return (await model.doStream({ ...callOptions, abortSignal: watch.signal })).stream
    } catch (error) {
      if (signal.aborted || !watch.isSent) throw error
      const hasTools = leftOut.takenTools(request).length > 0
      const hasChoice = hasTools && request.choices?.toolChoice !== undefined
      const more = [
        ...(hasAttachments(messages) ? ['attachments'] : []),
        ...(hasTools ? ['tools'] : []),
        ...(hasChoice ? ['tool_choice'] : []),
      ]
      const sent = [...Object.keys(options), ...more]
      if (!leftOut.learn(request.model, toFailure(error, watch, turn), sent)) throw error
      watch.restart()
    }
  }
}

const takenMessages = ({ request: { model, messages }, leftOut }: Turn) =>
  leftOut.has(model, 'attachments') ? withoutAttachments(messages) : messages

function takenOptions({ request, options, leftOut }: Turn): ModelOptions {
  const isTaken = ([name]: [string, unknown]) => !leftOut.has(request.model, name as OptionalPart)
  return Object.fromEntries(Object.entries(chosenOptions(options, request)).filter(isTaken))
}

/** Notes the options that the package reports as left out. */
function noteUnsupported({ warnings }: StartPart, { request, leftOut }: Turn): void {
  for (const warning of warnings) if (warning.type === 'unsupported') leftOut.add(request.model, warning.feature)
}

/** Classifies an error that was thrown or streamed. Throws one from before the request was sent: that is a bug. */
function toFailure(error: unknown, { breach, isSent }: CallWatch, { call, limits }: Turn): Failure {
  if (breach) return breachFailure(breach, call, limits)
  if (!isSent) throw error
  return classifyFailure(error, call) ?? packageFailure(error, call)
}

/** Classifies an error of the package without a status: there was no connection, or the stream has a wrong format. */
function packageFailure(error: unknown, call: FailedCall): Failure {
  const { name, data, statusCode } = error as { name?: string; data?: unknown; statusCode?: number }
  if (name === 'AI_APICallError' && statusCode === undefined) return connectionFailure('', call)
  if (name === 'AI_InvalidResponseDataError' && data === undefined) return truncatedAnswer(call)
  const isBadChunk = name === 'AI_JSONParseError' || name === 'AI_TypeValidationError'
  return unreadableAnswer(isBadChunk ? 'bad_chunk' : 'bad_answer', call)
}

function lastParts(finish: FinishPart | undefined, answer: PartReader, { call, request, vendor }: Turn): ModelPart[] {
  const { unified, raw } = finish?.finishReason ?? { unified: 'interrupted' }
  const reason = finish && answer.toFinishReason(finish.finishReason)
  const isEmpty = reason === 'end_turn' && !answer.hasText && !mayBeEmpty(request)
  if (isEmpty) return [{ type: 'failure', failure: emptyAnswer(call) }]
  if (finish && reason) {
    const usage = countedIn(vendor.tierOf?.(finish.providerMetadata), toUsage(finish.usage))
    return [...answer.calls, { type: 'finish', reason, usage }]
  }
  if (unified === 'content-filter') return [{ type: 'failure', failure: contentFiltered(call) }]
  return [{ type: 'failure', failure: unified === 'interrupted' ? truncatedAnswer(call) : abortedAnswer(call, raw) }]
}

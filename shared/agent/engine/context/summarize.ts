import type { AgentEvent } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import { callModel } from '../../providers/failures/failover.ts'
import type { Message, ModelRoute, Usage } from '../../providers/port.ts'
import type { RunResources } from '../resources.ts'
import { estimateUsage } from '../usage.ts'
import { tokensOf } from './size.ts'
import { summaryRequest, transcriptWithin } from './summary.ts'

export type Summary = {
  /** `undefined` when no model made one. */
  text: string | undefined
  /** The cost of the call; `undefined` when no model answered. */
  spent: { usage: Usage; route: ModelRoute } | undefined
}

/** Limits of the request and of the summary, in characters. */
type Lengths = { maxChars: number; summaryChars: number }

const NO_SUMMARY: Summary = { text: undefined, spent: undefined }

/** Has a model summarise messages, in one call that is no turn of the run. Yields the call's warnings. */
export async function* summarize(
  messages: readonly Message[],
  { maxChars, summaryChars }: Lengths,
  { models, signal }: Pick<RunResources, 'models' | 'signal'>,
): AsyncGenerator<AgentEvent, Summary, undefined> {
  const transcript = transcriptWithin(messages, maxChars)
  if (transcript === undefined) return NO_SUMMARY
  const { primary, fallback } = models.summaries()
  const request = summaryRequest(transcript, summaryChars)
  let text = ''
  let route = primary
  let usage: Usage | undefined
  for await (const part of callModel({ primary, fallback, request, signal })) {
    if (part.type === 'warning') yield part
    if (part.type === 'served_by') route = part.route
    if (part.type === 'text_delta') text += part.text
    if (part.type === 'failure') return NO_SUMMARY
    if (part.type === 'finish') usage = part.usage
    if (part.type === 'finish' || text.length > summaryChars) break
  }
  if (signal.aborted) return NO_SUMMARY
  usage ??= estimateUsage(tokensOf(transcript.length), text.length)
  return summaryOf(truncate(text, summaryChars), { usage, route })
}

const summaryOf = (text: string, spent: Summary['spent']): Summary => ({ text: text.trim() || undefined, spent })

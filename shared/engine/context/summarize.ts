import type { AgentEvent } from '../../events.ts'
import { callModel, type ModelCall } from '../../providers/failures/failover.ts'
import type { Message, ModelRoute, Usage } from '../../providers/port.ts'
import { estimateUsage } from '../usage.ts'
import { tokensOf } from './size.ts'
import { clip, materialOf, summaryRequest } from './summary.ts'

export type Summary = {
  /** Missing when no model made one. */
  text?: string
  /** Missing when no model answered. */
  spent?: { usage: Usage; route: ModelRoute }
}

type Lengths = { maxChars: number; summaryChars: number }

/** Has a model summarise messages, in one call that is no turn of the run. A failure is a summary without a text. */
export async function* askForSummary(
  messages: readonly Message[],
  { maxChars, summaryChars }: Lengths,
  route: Pick<ModelCall, 'primary' | 'fallback' | 'signal'>,
): AsyncGenerator<AgentEvent, Summary, undefined> {
  const transcript = materialOf(messages, maxChars)
  if (transcript === undefined) return {}
  let text = ''
  let servedBy = route.primary
  for await (const part of callModel({ ...route, request: summaryRequest(transcript, summaryChars) })) {
    if (part.type === 'warning') yield part
    if (part.type === 'served_by') servedBy = part.route
    if (part.type === 'text_delta') text += part.text
    if (part.type === 'failure') return {}
    if (part.type === 'finish') return told(text, part.usage, servedBy)
    if (text.length > summaryChars) break
  }
  if (route.signal.aborted) return {}
  return told(clip(text, summaryChars), estimateUsage(tokensOf(transcript.length), text.length), servedBy)
}

const told = (text: string, usage: Usage, route: ModelRoute): Summary => ({
  ...(text.trim() !== '' && { text: text.trim() }),
  spent: { usage, route },
})

import { oneByOne } from '../../../kernel/async/batch.ts'
import type { AgentEvent } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import { callModel } from '../../providers/failures/failover.ts'
import type { Message } from '../../providers/port.ts'
import type { Account } from '../account.ts'
import type { RunResources } from '../resources.ts'
import { summaryRequest, transcriptWithin } from './summary.ts'

/** Limits of the request and of the summary, in characters. */
type Lengths = { maxChars: number; summaryChars: number }

type Calls = Pick<RunResources, 'models' | 'signal'> & { account: Pick<Account, 'sideCall'> }

/**
 * Asks a model to summarise messages, in one call that is no turn of the run. Yields the call's warnings, and returns `undefined` when no model
 * made a summary.
 */
export async function* summarize(
  messages: readonly Message[],
  { maxChars, summaryChars }: Lengths,
  { models, signal, account }: Calls,
): AsyncGenerator<AgentEvent, string | undefined, undefined> {
  const transcript = transcriptWithin(messages, maxChars)
  if (transcript === undefined) return undefined
  const call = { ...models.summaries(), request: summaryRequest(transcript, summaryChars), signal }
  const counted = account.sideCall(call)
  let text = ''
  try {
    for await (const part of oneByOne(callModel(call))) {
      counted.note(part)
      if (part.type === 'warning') yield part
      if (part.type === 'text_delta') text += part.text
      if (part.type === 'failure') return undefined
      if (part.type === 'finish' || text.length > summaryChars) break
    }
  } finally {
    counted.end()
  }
  return signal.aborted ? undefined : truncate(text, summaryChars).trim() || undefined
}

import type { Message, ToolResultBlock } from '../../providers/port.ts'
import { charsOf } from './size.ts'

/** The room there is, in characters. */
export type Room = { fixedChars: number; targetChars: number }

/** What becomes of a history that is too long: a summary of `older`, if it holds anything, then `kept` as it stands. */
export type Plan = { older: readonly Message[]; kept: readonly Message[]; trimmedOutputs: number; summaryChars: number }

const MAX_SUMMARY_CHARS = 8_000
/** Less than this of the whole is not worth a model call. */
const WORTH_SUMMARISING = 0.1

/**
 * Makes a history fit into `targetChars` (D5.6): tool outputs of older turns are trimmed first, and older turns summarised
 * where that is not enough. What cannot be made to fit is made as short as it may be.
 */
export function planCompaction(messages: readonly Message[], { fixedChars, targetChars }: Room): Plan {
  const { messages: trimmed, trimmedOutputs } = trimOutputs(messages)
  const summaryChars = Math.min(MAX_SUMMARY_CHARS, Math.floor(targetChars / 4))
  const whole: Plan = { older: [], kept: trimmed, trimmedOutputs, summaryChars }
  const chars = charsOf(trimmed)
  if (fixedChars + chars <= targetChars) return whole

  const { older, kept } = split(trimmed, targetChars - fixedChars - summaryChars)
  const saved = chars - charsOf(kept)
  return saved < (fixedChars + chars) * WORTH_SUMMARISING ? whole : { ...whole, older, kept }
}

const TRIM_OVER_CHARS = 400
const KEPT_CHARS = 200
const TURNS_KEPT = 2

/** The last turns keep their outputs: the model has not worked with them yet. */
function trimOutputs(messages: readonly Message[]): { messages: readonly Message[]; trimmedOutputs: number } {
  const turns = indexesOf(messages, 'assistant')
  const untrimmedFrom = turns.at(-TURNS_KEPT) ?? 0
  let trimmedOutputs = 0
  const trim = (result: ToolResultBlock): ToolResultBlock => {
    if (result.output.length <= TRIM_OVER_CHARS) return result
    trimmedOutputs++
    const note = `[trimmed to make room: ${KEPT_CHARS} of ${result.output.length} characters are left]`
    return { ...result, output: `${result.output.slice(0, KEPT_CHARS).toWellFormed()}\n${note}` }
  }
  const trimmed = messages.map((message, index) =>
    message.role === 'tool' && index < untrimmedFrom ? { ...message, results: message.results.map(trim) } : message,
  )
  return { messages: trimmed, trimmedOutputs }
}

type Split = Pick<Plan, 'older' | 'kept'>

/**
 * As much of the last two prompts and what followed them stays as fits, at least the last prompt; of a long run's many turns
 * on one prompt as many of the last as fit, at least two. A part begins with a turn, so that no call is parted from its results.
 */
function split(messages: readonly Message[], maxChars: number): Split {
  const prompts = indexesOf(messages, 'user')
  const last = prompts.at(-1) ?? 0
  for (let cut = prompts.at(-2) ?? last; cut <= last; cut++) {
    const kept = messages.slice(cut)
    if (messages[cut]?.role !== 'tool' && charsOf(kept) <= maxChars) return { older: messages.slice(0, cut), kept }
  }
  return splitRun(messages, last, maxChars)
}

function splitRun(messages: readonly Message[], last: number, maxChars: number): Split {
  const turns = indexesOf(messages, 'assistant').filter((index) => index > last)
  const prompt = messages.slice(last, last + 1)
  for (const cut of turns.slice(1, 1 - TURNS_KEPT)) {
    const kept = [...prompt, ...messages.slice(cut)]
    if (charsOf(kept) <= maxChars || cut === turns.at(-TURNS_KEPT)) return { older: messages.slice(0, cut), kept }
  }
  return { older: messages.slice(0, last), kept: messages.slice(last) }
}

const indexesOf = (messages: readonly Message[], role: Message['role']): number[] =>
  messages.flatMap((message, index) => (message.role === role ? [index] : []))

import type { AttachedFile } from '../../../kernel/attachment.ts'
import { countChars, truncate, truncateStart } from '../../../kernel/text.ts'
import type { Message, ToolResultBlock } from '../../providers/port.ts'
import { charsOf } from './size.ts'

/** The size to reach, and the part of it that no compaction changes, in characters. */
export type SizeGoal = { fixedChars: number; targetChars: number }

/** How to shorten a history: replace `older` by a summary of at most `summaryChars`, unless it is empty, and keep `kept`. */
export type CompactionPlan = {
  older: readonly Message[]
  kept: readonly Message[]
  trimmedOutputs: number
  summaryChars: number
}

const MAX_SUMMARY_CHARS = 8_000
/** A summary that saves a smaller part of the request is not worth a model call. */
const MIN_SAVED_PART = 0.1

/**
 * Plans how a history fits into `targetChars` (D5.6): tool outputs of older turns are trimmed first; if that is not enough, older
 * turns are summarised, and finally the outputs of the newest turns are shortened. A history that cannot fit is made as short as
 * possible.
 */
export function planCompaction(messages: readonly Message[], { fixedChars, targetChars }: SizeGoal): CompactionPlan {
  const plan = planWithoutNewest(messages, { fixedChars, targetChars })
  const summaryChars = plan.older.length === 0 ? 0 : plan.summaryChars
  const newest = shortenOutputs(plan.kept, targetChars - fixedChars - summaryChars)
  return { ...plan, kept: newest.messages, trimmedOutputs: plan.trimmedOutputs + newest.trimmedOutputs }
}

function planWithoutNewest(messages: readonly Message[], { fixedChars, targetChars }: SizeGoal): CompactionPlan {
  const { messages: trimmed, trimmedOutputs } = trimOutputs(messages)
  const summaryChars = Math.min(MAX_SUMMARY_CHARS, Math.floor(targetChars / 4))
  const whole: CompactionPlan = { older: [], kept: trimmed, trimmedOutputs, summaryChars }
  const chars = charsOf(trimmed)
  if (fixedChars + chars <= targetChars) return whole

  const { older, kept } = split(trimmed, targetChars - fixedChars - summaryChars)
  const saved = chars - charsOf(kept)
  return saved < (fixedChars + chars) * MIN_SAVED_PART ? whole : { ...whole, older, kept }
}

const TRIM_OVER_CHARS = 400
const KEPT_CHARS = 200
const TURNS_KEPT = 2

type Trimmed = { messages: readonly Message[]; trimmedOutputs: number }

/**
 * Trims older turns: their files are left out, and files of earlier prompts are only named. The last turns keep their
 * outputs, because the model has not used them yet.
 */
function trimOutputs(messages: readonly Message[]): Trimmed {
  const turns = indexesOf(messages, 'assistant')
  const untrimmedFrom = turns.at(-TURNS_KEPT) ?? 0
  let trimmedOutputs = 0
  const trim = ({ attachments = [], ...result }: ToolResultBlock): ToolResultBlock => {
    const chars = countChars(result.output)
    if (attachments.length > 0 && chars <= TRIM_OVER_CHARS) trimmedOutputs++
    if (chars <= TRIM_OVER_CHARS) return result
    trimmedOutputs++
    const note = `\n[trimmed to make room: ${KEPT_CHARS} of ${chars} characters are left]`
    return { ...result, output: truncate(result.output, KEPT_CHARS, note) }
  }
  const prompt = messages.findLastIndex(({ role }) => role === 'user')
  const named = messages.map((message, index) => {
    if (message.role !== 'user' || index >= prompt || !message.files?.some(({ is_named }) => !is_named)) return message
    trimmedOutputs++
    return { ...message, files: namedFiles([message]) }
  })
  return { messages: withResults(named, (index) => index < untrimmedFrom, trim), trimmedOutputs }
}

/** The files of messages that models know by name only. */
export const namedFiles = (messages: readonly Message[]): AttachedFile[] =>
  messages.flatMap((message) =>
    message.role === 'user' ? (message.files ?? []).map((file) => ({ ...file, is_named: true as const })) : [],
  )

/** The least that is left of an output of the newest turns. */
const MIN_OUTPUT_CHARS = 1_000

/** Shortens the longest outputs, all to the same length, until the messages have at most `maxChars`. Both ends of an output stay. */
function shortenOutputs(messages: readonly Message[], maxChars: number): Trimmed {
  const over = charsOf(messages) - maxChars
  const lengths = messages.flatMap((message) =>
    message.role === 'tool' ? message.results.map(({ output }) => output.length) : [],
  )
  const limit = Math.max(MIN_OUTPUT_CHARS, commonLimit(lengths, sumOf(lengths) - over))
  let trimmedOutputs = 0
  const shorten = (result: ToolResultBlock): ToolResultBlock => {
    const { output } = result
    if (output.length <= limit + NOTE_CHARS) return result
    trimmedOutputs++
    const half = Math.floor((limit - NOTE_CHARS) / 2)
    const note = `\n[trimmed to make room: ${2 * half} of ${countChars(output)} characters are left]\n`
    return { ...result, output: truncate(output, half, note) + truncateStart(output, half) }
  }
  return { messages: withResults(messages, () => true, shorten), trimmedOutputs }
}

/** More than the note about a shortened output needs. */
const NOTE_CHARS = 100

/** The common limit for all lengths at which their sum is `total`. */
function commonLimit(lengths: readonly number[], total: number): number {
  let left = total
  const ascending = lengths.toSorted((a, b) => a - b)
  for (const [index, length] of ascending.entries()) {
    const share = left / (ascending.length - index)
    if (length > share) return Math.floor(share)
    left -= length
  }
  return Number.POSITIVE_INFINITY
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

const withResults = (
  messages: readonly Message[],
  isMeant: (index: number) => boolean,
  change: (result: ToolResultBlock) => ToolResultBlock,
): readonly Message[] =>
  messages.map((message, index) =>
    message.role === 'tool' && isMeant(index) ? { ...message, results: message.results.map(change) } : message,
  )

type Split = Pick<CompactionPlan, 'older' | 'kept'>

/**
 * Keeps as much as fits of the last two prompts and their turns, and at least the last prompt. If the turns of the last prompt
 * alone are too long, it keeps as many of the newest as fit, at least two. The kept part never begins with tool results, so
 * that no call is separated from its results.
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

import type { AgentEvent, WarningEvent } from '../../../kernel/events.ts'
import type { Usage } from '../../providers/port.ts'
import type { Account } from '../account.ts'
import type { Conversation } from '../conversation.ts'
import type { Models } from '../resources.ts'
import type { Answer } from '../turn.ts'
import { type CompactionPlan, planCompaction } from './history.ts'
import { charsOf, type FixedParts, fixedChars, tokensOf, tokensPerChar } from './size.ts'
import { summarize } from './summarize.ts'
import { digestOf, summaryMessage } from './summary.ts'

export type ContextOptions = {
  conversation: Conversation
  fixed: FixedParts
  /** Summaries come from the run's own models. */
  models: Models
  signal: AbortSignal
  /** Counts the summaries. */
  account: Pick<Account, 'sideCall'>
}

/** Keeps the requests of one run within its model's window (D5.6). */
export type Context = {
  /** Estimate of the next request's tokens. */
  readonly tokens: number
  /** Records the provider's count of the request that was just answered. */
  measure(usage: Usage | undefined): void
  /** Compacts the history when the next request comes near the window. */
  compactIfNeeded(): AsyncGenerator<AgentEvent, void, undefined>
  /** Compacts the history when the provider rejected the request as too long. Returns whether to send it again. */
  compactAfterRejection(answer: Answer): AsyncGenerator<AgentEvent, boolean, undefined>
}

/** Every model's window holds a shorter history, so that most runs need not look the window up. */
const MIN_CHARS = 16_000
/** Tokens of a window that nobody knows: no history grows without end. */
const UNKNOWN_WINDOW = 2_000_000
/** The part of the window above which the history is compacted. The answer needs room too. */
const COMPACT_ABOVE = 0.8

export function createContext(options: ContextOptions): Context {
  const { conversation, models } = options
  let fixed: number | undefined
  /** The window that a rejection has named, or the size of the request that was rejected. */
  let named = Number.POSITIVE_INFINITY
  const sizeOf = async (reason: Reason): Promise<Size> => {
    fixed ??= fixedChars(options.fixed)
    const perChar = tokensPerChar(conversation.measured, fixed)
    const { provider, model } = models.main().primary
    const asked = provider.contextWindow ?? (await provider.askWindow?.(model, options.signal))
    const known = asked ?? models.windowOf(provider.type, model) ?? UNKNOWN_WINDOW
    return { reason, fixedChars: fixed, perChar, window: Math.min(known, named) }
  }
  return {
    get tokens() {
      fixed ??= fixedChars(options.fixed)
      return tokensIn(conversation.chars, { fixedChars: fixed, perChar: tokensPerChar(conversation.measured, fixed) })
    },
    measure(usage) {
      if (usage && usage.input > 0) conversation.measure(usage.input)
    },
    async *compactIfNeeded() {
      if (conversation.chars < MIN_CHARS) return
      const size = await sizeOf('estimate')
      if (tokensIn(conversation.chars, size) > size.window * COMPACT_ABOVE) yield* compact(size, options)
    },
    async *compactAfterRejection({ failure, outputChars }) {
      if (failure?.code !== 'context_too_long' || outputChars > 0) return false
      named = Math.min(named, failure.windowTokens ?? this.tokens)
      return yield* compact(await sizeOf('provider'), options)
    },
  }
}

type Reason = 'provider' | 'estimate'
/** `window` is in tokens. */
type Size = { reason: Reason; fixedChars: number; perChar: number; window: number }

const tokensIn = (chars: number, { fixedChars: fixed, perChar }: Pick<Size, 'fixedChars' | 'perChar'>): number =>
  tokensOf(fixed + chars, perChar)

/** Returns whether the history is shorter now. It is replaced in one step at the end, so that an abort leaves it complete. */
async function* compact(size: Size, options: ContextOptions): AsyncGenerator<AgentEvent, boolean, undefined> {
  const { conversation, signal } = options
  const before = conversation.messages
  const targetChars = targetTokens(size, tokensIn(conversation.chars, size)) / size.perChar
  const plan = planCompaction(before, { fixedChars: size.fixedChars, targetChars })
  const after = plan.older.length === 0 ? plan.kept : [yield* summaryOf(plan, targetChars, options), ...plan.kept]
  if (signal.aborted || charsOf(after) >= conversation.chars) return false
  const [charsBefore, charsAfter] = [conversation.chars, charsOf(after)]
  conversation.compact(after)
  yield compactedWarning({
    reason: size.reason,
    tokens_before: tokensIn(charsBefore, size),
    tokens_after: tokensIn(charsAfter, size),
    messages_before: before.length,
    messages_after: after.length,
    trimmed_outputs: plan.trimmedOutputs,
  })
  return true
}

/** The part of the window that a compacted request should fill at most. */
const TARGET = 0.6

/** A request that a provider rejects exceeds the window, whatever the estimate says. Half of it is assumed to fit. */
function targetTokens({ reason, window }: Size, tokens: number): number {
  return reason === 'estimate' ? window * TARGET : Math.min(window * TARGET, tokens / 2)
}

async function* summaryOf({ older, summaryChars }: CompactionPlan, maxChars: number, options: ContextOptions) {
  const text = yield* summarize(older, { maxChars, summaryChars }, options)
  return summaryMessage(text ?? digestOf(older, summaryChars))
}

const compactedWarning = (detail: WarningEvent['detail']): WarningEvent => ({
  type: 'warning',
  code: 'context_compacted',
  message: 'the conversation had become too long for the model: its older part was shortened',
  detail,
})

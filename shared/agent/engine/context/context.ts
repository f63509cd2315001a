import type { AgentEvent, WarningEvent } from '../../../kernel/events.ts'
import { quoted } from '../../../kernel/text.ts'
import type { CountedUsage, ModelRoute } from '../../providers/port.ts'
import type { Account } from '../account.ts'
import type { Conversation } from '../conversation.ts'
import type { Models } from '../resources.ts'
import type { Answer } from '../turn.ts'
import { type CompactionPlan, planCompaction } from './history.ts'
import {
  charsOf,
  type FixedParts,
  fixedChars,
  hasShownFiles,
  isCutSilently,
  type Measure,
  tokensOf,
  tokensPerChar,
} from './size.ts'
import { summarize } from './summarize.ts'
import { digestOf, summaryMessage } from './summary.ts'

export type ContextOptions = {
  conversation: Conversation
  fixed: FixedParts
  /** Summaries come from the run's own models. */
  models: Models
  signal: AbortSignal
  /** Counts the model calls for summaries. */
  account: Pick<Account, 'sideCall'>
}

/** Keeps the requests of one run within its model's window (D5.6). */
export type Context = {
  /** Estimate of the next request's tokens. */
  readonly tokens: number
  /**
   * Records the provider's count of the request that was just answered. Yields a warning when the count shows that the
   * server has cut the request.
   */
  measure(usage: CountedUsage | undefined, route: ModelRoute): Generator<AgentEvent, void, undefined>
  /** Compacts the history when the next request nearly fills the window. `undefined`: the history is so short that it fits every window. */
  compactIfNeeded(): AsyncGenerator<AgentEvent, void> | undefined
  /** Compacts the history and returns whether to send it again. `undefined`: the provider did not reject the request as too long. */
  compactAfterRejection(answer: Answer): AsyncGenerator<AgentEvent, boolean> | undefined
}

/** Every window in the catalogue holds a shorter history, so most runs need not look up the window. */
const MIN_CHARS = 16_000
/** The tokens of a context window whose size is unknown, so that no history grows without a limit. */
const UNKNOWN_WINDOW = 2_000_000
/** The part of the window above which the history is compacted. The answer needs room too. */
const COMPACT_ABOVE = 0.8
/** The part of the window that the system prompt and the tools may fill without a warning. */
const MAX_FIXED = 0.5

export const createContext = (options: ContextOptions): Context => new RunContext(options)

class RunContext implements Context {
  readonly #options: ContextOptions
  readonly #sizes: Sizes
  #hasWarned = false

  constructor(options: ContextOptions) {
    this.#options = options
    this.#sizes = new Sizes(options)
  }

  get tokens(): number {
    return this.#sizes.tokens
  }

  *measure(usage: CountedUsage | undefined, { model }: ModelRoute): Generator<AgentEvent, void, undefined> {
    if (!usage?.input || usage.input <= 0) return
    const { conversation } = this.#options
    const { chars, compactions, measured } = conversation
    const now = { tokens: usage.input, chars, fixedChars: this.#sizes.fixedChars, model, compactions }
    // The cost of a file is a guess, too rough to detect that a part is missing.
    if (!isCutSilently(measured, now) || hasShownFiles(conversation.messages)) return conversation.measure(now)
    conversation.noteCut(now)
    yield cutWarning(now)
  }

  compactIfNeeded(): AsyncGenerator<AgentEvent, void, undefined> | undefined {
    return this.#sizes.areSmall ? undefined : this.#compactNearWindow()
  }

  compactAfterRejection({ failure, outputChars }: Answer): AsyncGenerator<AgentEvent, boolean, undefined> | undefined {
    if (failure?.code !== 'context_too_long' || outputChars > 0) return undefined
    return this.#compactRejected(failure.windowTokens)
  }

  async *#compactNearWindow(): AsyncGenerator<AgentEvent, void, undefined> {
    const { conversation, models } = this.#options
    const size = await this.#sizes.of('estimate')
    const fixedTokens = tokensOf(size.fixedChars, size.perChar)
    const isFull = fixedTokens > size.window * MAX_FIXED
    if (isFull && !this.#hasWarned) yield windowWarning(models.main().primary, size.window, fixedTokens)
    this.#hasWarned = true
    if (tokensIn(conversation.chars, size) > size.window * COMPACT_ABOVE) yield* compact(size, this.#options)
  }

  async *#compactRejected(windowTokens: number | undefined): AsyncGenerator<AgentEvent, boolean, undefined> {
    this.#sizes.rejectedAt(windowTokens)
    return yield* compact(await this.#sizes.of('provider'), this.#options)
  }
}

/** The sizes of one run's requests, and the window that they must fit. */
class Sizes {
  readonly #options: ContextOptions
  #fixed: number | undefined
  /** The window that a rejection has named, or else the size of the rejected request. */
  #named = Number.POSITIVE_INFINITY

  constructor(options: ContextOptions) {
    this.#options = options
  }

  get fixedChars(): number {
    this.#fixed ??= fixedChars(this.#options.fixed)
    return this.#fixed
  }

  /** Estimate of the next request's tokens. */
  get tokens(): number {
    const { conversation } = this.#options
    return tokensIn(conversation.chars, { fixedChars: this.fixedChars, perChar: this.#perChar })
  }

  /** Whether the request fits every known window, so that the model's window need not be looked up. */
  get areSmall(): boolean {
    const { conversation, models } = this.#options
    const { provider, model } = models.main().primary
    const isToldWindow = provider.askWindow !== undefined || provider.contextWindow !== undefined
    return !isToldWindow && conversation.chars < MIN_CHARS && !Number.isFinite(conversation.cutWindowOf(model))
  }

  rejectedAt(windowTokens: number | undefined): void {
    this.#named = Math.min(this.#named, windowTokens ?? this.tokens)
  }

  async of(reason: Reason): Promise<Size> {
    const { conversation, models, signal } = this.#options
    const { provider, model } = models.main().primary
    const asked = provider.contextWindow ?? (await provider.askWindow?.(model, signal))
    const known = asked ?? models.windowOf(provider.type, model) ?? UNKNOWN_WINDOW
    const window = Math.min(known, this.#named, conversation.cutWindowOf(model))
    return { reason, fixedChars: this.fixedChars, perChar: this.#perChar, window }
  }

  get #perChar(): number {
    return tokensPerChar(this.#options.conversation.measured, this.fixedChars)
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
  return summaryMessage(text ?? digestOf(older, summaryChars), older)
}

const windowWarning = ({ model }: ModelRoute, window: number, fixed: number): WarningEvent => ({
  type: 'warning',
  code: 'context_window',
  message: `the system prompt and the tools alone fill ${fixed} of the ${window} tokens that ${quoted(model)} reads: raise its window, or offer fewer tools`,
  detail: {
    model,
    window_tokens: window,
    fixed_tokens: fixed,
    suggestion:
      'Set context_window in MODEL_OPTIONS or in the options of the instance, or a larger num_ctx (OLLAMA_CONTEXT_LENGTH) at the server.',
  },
})

const cutWarning = ({ tokens, model }: Measure): WarningEvent => ({
  type: 'warning',
  code: 'context_cut',
  message: `the server of ${quoted(model)} has cut the conversation to ${tokens} tokens without saying so: from the next request on it is shortened to fit`,
  detail: {
    model,
    tokens,
    suggestion: 'Set context_window to the window of the model, and let the server refuse what is longer.',
  },
})

const compactedWarning = (detail: WarningEvent['detail']): WarningEvent => ({
  type: 'warning',
  code: 'context_compacted',
  message: 'the conversation had become too long for the model: its older part was shortened',
  detail,
})

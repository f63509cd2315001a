import type { AgentEvent, WarningEvent } from '../../events.ts'
import type { ModelCall } from '../../providers/failures/failover.ts'
import type { ModelRoute, Usage, WindowOf } from '../../providers/port.ts'
import type { Conversation } from '../conversation.ts'
import type { Answer } from '../turn.ts'
import { type Plan, planCompaction } from './history.ts'
import { charsOf, type Fixed, fixedChars, tokensOf, tokensPerChar } from './size.ts'
import { askForSummary } from './summarize.ts'
import { digestOf, summaryMessage } from './summary.ts'

export type ContextDeps = {
  conversation: Conversation
  fixed: Fixed
  /** Where summaries come from: the run's own model and its fallback. */
  route: Pick<ModelCall, 'primary' | 'fallback' | 'signal'>
  windowOf: WindowOf
  /** Told what a summary cost, which is no turn. */
  onSpent(usage: Usage, route: ModelRoute): void
}

/** Keeps the requests of one run within its model's window (D5.6). */
export type Context = {
  /** Estimate of the next request's tokens. */
  readonly tokens: number
  /** Told what the provider counted in the request that was just answered. */
  measure(usage: Usage | undefined): void
  /** Compacts the history when the next request is near the window. */
  fit(): AsyncGenerator<AgentEvent, void, undefined>
  /** Compacts the history when the provider found the request too long. Returns whether to ask again. */
  refit(answer: Answer): AsyncGenerator<AgentEvent, boolean, undefined>
}

/** No model has a window that a shorter history comes near to: most runs need not ask how large it is. */
const MIN_CHARS = 16_000
/** Of the window. The answer needs room too. */
const NEAR = 0.8

export function createContext(deps: ContextDeps): Context {
  const { conversation, route, windowOf } = deps
  let fixed: number | undefined
  const sizeOf = (reason: Reason): Size => {
    fixed ??= fixedChars(deps.fixed)
    const perChar = tokensPerChar(conversation.measured, fixed)
    const window = windowOf(route.primary.provider.type, route.primary.model)
    return { reason, fixedChars: fixed, perChar, ...(window !== undefined && { window }) }
  }
  return {
    get tokens() {
      fixed ??= fixedChars(deps.fixed)
      return tokensIn(conversation.chars, { fixedChars: fixed, perChar: tokensPerChar(conversation.measured, fixed) })
    },
    measure(usage) {
      if (usage && usage.input > 0) conversation.measure(usage.input)
    },
    async *fit() {
      if (conversation.chars < MIN_CHARS) return
      const size = sizeOf('estimate')
      if (size.window !== undefined && tokensIn(conversation.chars, size) > size.window * NEAR)
        yield* compact(size, deps)
    },
    async *refit({ failure, outputChars }) {
      return failure?.code === 'context_too_long' && outputChars === 0 && (yield* compact(sizeOf('provider'), deps))
    },
  }
}

type Reason = 'provider' | 'estimate'
type Size = { reason: Reason; fixedChars: number; perChar: number; window?: number }

const tokensIn = (chars: number, { fixedChars: fixed, perChar }: Pick<Size, 'fixedChars' | 'perChar'>): number =>
  tokensOf(fixed + chars, perChar)

/** Returns whether the history is shorter now. It changes in one step, when everything is there: a cut leaves it whole. */
async function* compact(size: Size, deps: ContextDeps): AsyncGenerator<AgentEvent, boolean, undefined> {
  const { conversation, route } = deps
  const before = conversation.messages
  const targetChars = targetTokens(size, tokensIn(conversation.chars, size)) / size.perChar
  const plan = planCompaction(before, { fixedChars: size.fixedChars, targetChars })
  const after = plan.older.length === 0 ? plan.kept : [yield* summaryOf(plan, targetChars, deps), ...plan.kept]
  if (route.signal.aborted || charsOf(after) >= conversation.chars) return false
  const [charsBefore, charsAfter] = [conversation.chars, charsOf(after)]
  conversation.compact(after)
  yield compacted({
    reason: size.reason,
    tokens_before: tokensIn(charsBefore, size),
    tokens_after: tokensIn(charsAfter, size),
    messages_before: before.length,
    messages_after: after.length,
    trimmed_outputs: plan.trimmedOutputs,
  })
  return true
}

const TARGET = 0.6

/** What a provider refuses is longer than the window, whatever the estimate says: half of it is a guess that fits. */
function targetTokens({ reason, window = Number.POSITIVE_INFINITY }: Size, tokens: number): number {
  return reason === 'estimate' ? window * TARGET : Math.min(window * TARGET, tokens / 2)
}

async function* summaryOf({ older, summaryChars }: Plan, maxChars: number, { route, onSpent }: ContextDeps) {
  const { text, spent } = yield* askForSummary(older, { maxChars, summaryChars }, route)
  if (spent) onSpent(spent.usage, spent.route)
  return summaryMessage(text ?? digestOf(older, summaryChars))
}

const compacted = (detail: WarningEvent['detail']): WarningEvent => ({
  type: 'warning',
  code: 'context_compacted',
  message: 'the conversation had become too long for the model: its older part was shortened',
  detail,
})

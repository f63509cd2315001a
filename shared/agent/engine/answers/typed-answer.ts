import { type FlatGenerator, inPlace } from '../../../kernel/async/flat-iteration.ts'
import { retryUntil } from '../../../kernel/async/retry.ts'
import { hasKind } from '../../../kernel/errors.ts'
import {
  type AgentEvent,
  type DoneEvent,
  errorEvent,
  type JsonObject,
  type OutputProblem,
  type WarningEvent,
} from '../../../kernel/events.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { AssistantBlock, Failure, Message, ModelRoute, StructuredOutput } from '../../providers/port.ts'
import type { Answer } from '../turn.ts'
import { done, type Totals, withTotals } from '../usage.ts'
import { checkOutput, correctionPrompt, repairWarning, shownProblems } from './output.ts'

/** The format that the last answer of an agent must have. */
export type AnswerForm = StructuredOutput & {
  checker: Pick<SchemaChecker, 'check'>
  native: NativeForm
}

/** Whether the provider's own feature for structured output is used. */
export type NativeForm = {
  isUsed(): Promise<boolean>
  /** Called when the provider has rejected a request with the feature; it is not used any more. */
  refuse(): void
}

/** Uses the feature until the provider rejects it, which costs one request. */
export function triedForm(): NativeForm {
  let isRefused = false
  return {
    isUsed: async () => !isRefused,
    refuse: () => void (isRefused = true),
  }
}

/** How often an agent may answer until its output is valid (D6.4, D41.2). */
export const MAX_TRIES = 3

/** The result of checking an answer: a valid value, another try, or the end without a value. */
export type CheckedAnswer =
  | { kind: 'ok'; output: unknown; warning: WarningEvent | undefined }
  | { kind: 'correct'; prompt: string; problems: readonly OutputProblem[] }
  | { kind: 'invalid'; problems: readonly OutputProblem[] }

type Events = readonly AgentEvent[]

type Ask = (form: StructuredOutput | undefined) => AsyncIterableIterator<Events, Answer, undefined>

/** The tries of one agent to give an answer in the required format. */
export class TypedAnswer {
  readonly #form: AnswerForm
  readonly #taken: ModelRoute[] = []
  #corrections: number

  /** `corrections`: how often another process has asked the agent to correct its answer. */
  constructor(form: AnswerForm, corrections = 0) {
    this.#form = form
    this.#corrections = corrections
  }

  /** How often the agent was asked to correct its answer. */
  get corrections(): number {
    return this.#corrections
  }

  /**
   * Asks a model for an answer in the required format. If it rejects the first such request, it is asked once more without the provider's
   * feature; once it has accepted one, a rejection has another cause.
   */
  async *ask(ask: Ask, primary: ModelRoute): FlatGenerator<Events, Answer, Answer> {
    const { name, schema, native } = this.#form
    const isUsed = await native.isUsed()
    const answer = yield inPlace(ask(isUsed ? { name, schema } : undefined))
    const { provider, model } = answer.servedBy ?? primary
    const hasTaken = this.#taken.some((route) => route.provider === provider && route.model === model)
    if (!isUsed || hasTaken) return answer
    if (!answer.failure) this.#taken.push({ provider, model })
    if (!answer.failure || !mayBeOfForm(answer.failure)) return answer
    native.refuse()
    return yield inPlace(ask(undefined))
  }

  /** Checks an answer without tool calls. Throws what the checker throws. */
  async check(blocks: readonly AssistantBlock[]): Promise<CheckedAnswer> {
    const { schema, checker } = this.#form
    const until = performance.now() + BUSY_MS
    const check = () => checkOutput(textOf(blocks), schema, checker)
    const checked = await retryUntil(check, { pauses: BUSY_PAUSES_MS, until, mayPass: isBusy })
    if ('value' in checked) return { kind: 'ok', output: checked.value, warning: repairWarning(checked.repairs) }
    const problems = shownProblems(checked.problems)
    if (this.#corrections + 1 >= MAX_TRIES) return { kind: 'invalid', problems }
    this.#corrections++
    return { kind: 'correct', prompt: correctionPrompt(checked.problems), problems }
  }
}

const mayBeOfForm = ({ code, reason }: Failure): boolean => code === 'provider_rejected' && reason.startsWith('http_4')

/** How long a check is repeated while the process's queue of checks is full: an answer that was paid for must not be lost. */
const BUSY_MS = 10_000
const BUSY_PAUSES_MS = [100, 1_000] as const
const isBusy = (cause: unknown): boolean => hasKind(cause, 'unavailable') || hasKind(cause, 'rate_limit')

const textOf = (blocks: readonly AssistantBlock[]): string =>
  blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')

/** Tells the client that the text of the turn is void. */
export const correctionWarning = (problems: readonly OutputProblem[]): WarningEvent => ({
  type: 'warning',
  code: 'output_invalid',
  message: 'the answer does not fit its schema, and the agent is asked to correct it',
  detail: { problems },
})

/** The last events of a run whose last turn is complete. `checked` is `undefined` for one that answers with text. */
export function* lastEvents(
  checked: CheckedAnswer | undefined,
  spent: Totals,
  stopReason: DoneEvent['stop_reason'],
): Generator<AgentEvent, void, undefined> {
  if (checked?.kind === 'ok' && checked.warning) yield checked.warning
  if (checked === undefined) return yield done(spent, stopReason)
  if (checked.kind === 'ok') return yield { ...done(spent, stopReason), output: checked.output }
  yield withTotals({ ...errorEvent('invalid_output', NEVER_FIT), problems: checked.problems }, spent)
}

const NEVER_FIT = `the answer did not fit its schema in ${MAX_TRIES} tries`

/** The model's last answer in a history whose last turn is complete. */
export function lastBlocks(messages: readonly Message[]): readonly AssistantBlock[] {
  const last = messages.at(-1)
  return last?.role === 'assistant' ? last.blocks : []
}

/** The system prompt of an agent whose last answer must fit a schema. */
export const withSchema = (task: string | undefined, schema: JsonObject): string =>
  `${task === undefined ? '' : `${task}\n\n`}Your last message must be JSON that fits this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`

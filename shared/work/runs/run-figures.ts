import { type Artifact, MAX_ARTIFACTS, type RunEvent, type RunTotals, type WarningEvent } from '../../kernel/events.ts'
import type { RunEndCode } from '../../kernel/metrics.ts'
import type { Outcome } from './run-state.ts'

const SPENT = ['input_tokens', 'output_tokens', 'cost_usd', 'cache_read_tokens', 'cache_write_tokens'] as const
type Spent = Record<(typeof SPENT)[number], number>

/** The number of requests to providers by outcome, counted from the events of a run. */
export type Requests = { ok: number; retried: number; failed_over: number; failed: number }

/** Adds up the figures for the report of a run from its events. It keeps no text. */
export class RunFigures {
  readonly #startedAt = performance.now()
  readonly requests: Requests = { ok: 0, retried: 0, failed_over: 0, failed: 0 }
  readonly spent: Spent = {
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
  }
  model: string | undefined
  turns = 0
  code: RunEndCode | undefined
  firstEventMs: number | undefined
  firstTokenMs: number | undefined
  /** Calls of tools and permission requests, including those of sub-agents. */
  toolCalls = 0
  permissions = 0
  artifacts: Artifact[] | undefined

  get ms(): number {
    return performance.now() - this.#startedAt
  }

  /** Returns the warning if another model has taken over, because this must be logged. */
  note(event: RunEvent): WarningEvent | undefined {
    this.firstEventMs ??= this.ms
    if (this.firstTokenMs === undefined && TOKENS.has(event.type)) this.firstTokenMs = this.ms
    const { type } = event
    if (type === 'turn_start' || type === 'started') this.model ??= event.model
    else if (type === 'turn_end' || type === 'progress') this.#addTurn(event)
    else if (type === 'subagent_event') this.#noteNested(event)
    else if (type === 'tool_use') this.toolCalls++
    else if (type === 'artifact') this.#noteArtifact(event)
    else if (type === 'permission_request') this.permissions++
    else if (type === 'warning') return this.#warned(event)
    else if (ENDS.has(type)) this.#noteEnd(event)
    return undefined
  }

  #noteArtifact({ type: _type, tool_use_id: _call, ...artifact }: Extract<RunEvent, { type: 'artifact' }>): void {
    if (this.artifacts?.some(({ file_id }) => file_id === artifact.file_id)) return // A turn that was repeated reports the file again.
    this.artifacts = [...(this.artifacts ?? []), artifact].slice(0, MAX_ARTIFACTS)
  }

  #addTurn(turn: Partial<Spent>): void {
    this.turns++
    this.requests.ok++
    for (const field of SPENT) this.spent[field] += turn[field] ?? 0
  }

  /** A permission request of a sub-agent is also sent as an event of the run, and only that one is counted (D4.13). */
  #noteNested(event: Extract<RunEvent, { type: 'subagent_event' }>): void {
    if (event.event_type === 'turn_end') this.requests.ok++
    if (event.event_type === 'tool_use') this.toolCalls++
    if (event.event_type === 'warning') this.#countWarning(event as unknown as WarningEvent)
    if (event.event_type === 'error' && isProviderCode(event['code'])) this.requests.failed++
  }

  #warned(warning: WarningEvent): WarningEvent | undefined {
    this.#countWarning(warning)
    return warning.code === 'provider_failover' ? warning : undefined
  }

  #countWarning({ code, detail }: Pick<WarningEvent, 'code' | 'detail'>): void {
    if (code === 'transport_retrying') this.requests.retried++
    if (code === 'provider_failover' && detail['reason'] !== 'provider_skipped') this.requests.failed_over++
  }

  /** The totals of a run include the costs of its sub-agents, its summaries and its aborted turn (D4.10). */
  #noteEnd(event: RunEvent): void {
    this.code = endCodeOf(event)
    if (event.type === 'result' && event.artifacts) this.artifacts = [...event.artifacts]
    if (isProviderCode(this.code)) this.requests.failed++
    if (!('total_input_tokens' in event)) return
    const { total_input_tokens, total_output_tokens, cost_usd, ...cached } = event as RunTotals
    const { cache_read_tokens = 0, cache_write_tokens = 0 } = cached
    const total = { input_tokens: total_input_tokens, output_tokens: total_output_tokens, cost_usd }
    Object.assign(this.spent, total, { cache_read_tokens, cache_write_tokens })
  }
}

const TOKENS: ReadonlySet<RunEvent['type']> = new Set(['text_delta', 'thinking_delta', 'tool_use'])
const ENDS: ReadonlySet<RunEvent['type']> = new Set(['done', 'plan_queued', 'error', 'result', 'plan_ended'])

const isProviderCode = (code: unknown): boolean => typeof code === 'string' && code.startsWith('provider_')

/** The status of a run that ends with this event. */
export function outcomeOf(event: RunEvent): Outcome {
  if (event.type === 'plan_ended')
    return event.status === 'failed' || event.status === 'cancelled' ? event.status : 'done'
  if (event.type !== 'error') return 'done'
  return event.code === 'cancelled' || event.code === 'session_deleted' ? 'cancelled' : 'failed'
}

function endCodeOf(event: RunEvent): RunEndCode {
  if (event.type === 'error') return event.code
  if (event.type === 'result') return event.verdict
  if (event.type !== 'plan_ended' || event.status === 'done') return 'ok'
  return event.status === 'cancelled' ? 'cancelled' : 'plan_failed'
}

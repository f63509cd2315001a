import { invalidRequest, notFound } from '../../kernel/errors.ts'
import type { JsonObject, OutputProblem } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { DAY_MS, readTime } from '../../kernel/time.ts'
import { type ShownFailure, shownFailure } from './execute/outcome.ts'
import { type SearchFilter, searchDispatches } from './history/search.ts'
import { BUCKET_MS, type StatsBucket, type StatsPage, startOf, statsOf } from './history/stats.ts'
import type { Dispatch, DispatchKind, DispatchOutput, DispatchStatus, DispatchStore } from './port.ts'
import { assertSpeed, framesOf, type ReplayOptions, ReplayStream } from './replay.ts'
import { isKeptByDeadline } from './transitions.ts'

/** One item of `GET /dispatches` (D6.8). */
export type DispatchSummary = Pick<
  Dispatch,
  | 'trace_id'
  | 'kind'
  | 'subject'
  | 'provider_instance'
  | 'served_instance'
  | 'model'
  | 'idempotency_key'
  | 'status'
  | 'started_at'
  | 'ended_at'
  | 'deadline_at'
  | 'duration_ms'
  | 'turns'
  | 'input_tokens'
  | 'output_tokens'
  | 'cost_usd'
> & {
  tenant: TenantId
  flow: { name: string; version: number }
  error: ShownFailure | null
}

/** `GET /dispatches/{id}` (D6.8). `input`, `raw_output` and `output` are `null` when they are not kept or do not exist yet. */
export type DispatchDetail = DispatchSummary & {
  input: JsonObject | null
  raw_output: string | null
  output: unknown
  /** Why the output of an `invalid_output` is invalid. */
  problems?: readonly OutputProblem[]
}

export type DispatchFilter = SearchFilter & {
  /** Executions that an evaluation has started are shown only if asked for. */
  kind?: DispatchKind | undefined
  flow?: string | undefined
  status?: DispatchStatus | undefined
  /** Bounds of `started_at` in ISO 8601: from `since` on, and before `until`. */
  since?: string | undefined
  until?: string | undefined
  /** 1 to 200. */
  limit: number
  cursor?: string | undefined
}

/** Without bounds the last 24 hours, or 30 days. `from` and `to` are times in ISO 8601. */
export type StatsFilter = {
  bucket: StatsBucket
  flow?: string | undefined
  from?: string | undefined
  to?: string | undefined
  limit: number
  cursor?: string | undefined
}

export type DispatchLogDeps = {
  dispatches: Pick<DispatchStore, 'list' | 'get' | 'input' | 'output'>
  /** The tenant's `audit.retention_days` at the moment: older records are not shown, even if they are still stored. */
  retentionDays(tenant: TenantId): Promise<number>
  now?: () => Date
}

/** The span that `stats` shows without `from`. */
const SHOWN_MS: Record<StatsBucket, number> = { hour: DAY_MS, day: 30 * DAY_MS }

/** How long a record with the latest possible deadline is kept: until a day after it (D54.8). */
const LONGEST_MS = 8 * DAY_MS

/** Reads the history of flow runs (api.md "Flow execution history", D6.8). Throws the same `not_found` for foreign and unknown ids. */
export class DispatchLog {
  readonly #dispatches: DispatchLogDeps['dispatches']
  readonly #retentionDays: DispatchLogDeps['retentionDays']
  readonly #now: () => Date

  constructor({ dispatches, retentionDays, now = () => new Date() }: DispatchLogDeps) {
    this.#dispatches = dispatches
    this.#retentionDays = retentionDays
    this.#now = now
  }

  /** Newest first. A page that `search.ts` has filtered may be short although more pages follow. */
  async list(
    tenant: TenantId,
    filter: DispatchFilter,
  ): Promise<{ dispatches: DispatchSummary[]; next_cursor: string | null }> {
    const { since, until, kind = 'run', flow, status, limit, cursor, ...other } = filter
    const sinceMs = readTime('since', since) ?? -Infinity
    const untilMs = readTime('until', until)
    const oldestMs = await this.#oldestMs(tenant)
    const firstMs = Math.min(oldestMs, this.#now().getTime() - LONGEST_MS)
    const query = { kind, flow, status, limit, cursor, sinceMs: Math.max(firstMs, sinceMs), untilMs }
    const isSearch = Object.values(other).some((value) => value !== undefined)
    const { dispatches, next_cursor } = isSearch
      ? await searchDispatches(this.#dispatches, tenant, { query, filter: other })
      : await this.#dispatches.list(tenant, query)
    const kept = dispatches.filter((dispatch) => this.#isKept(dispatch, oldestMs))
    return { dispatches: kept.map((dispatch) => summaryOf(tenant, dispatch)), next_cursor }
  }

  /** By hour or day, newest first, without evaluations. Throws `invalid_request` for an invalid cursor or time. */
  async stats(tenant: TenantId, { from, to, ...filter }: StatsFilter): Promise<StatsPage> {
    const { bucket } = filter
    const toMs = readTime('to', to) ?? this.#now().getTime() + 1
    const fromMs = readTime('from', from) ?? toMs - SHOWN_MS[bucket]
    if (fromMs >= toMs) throw invalidRequest('from must be before to', { param: '/from' })
    const oldestMs = await this.#oldestMs(tenant)
    return statsOf(this.#dispatches, tenant, {
      ...filter,
      fromMs: Math.max(oldestMs, startOf(fromMs, bucket)),
      toMs: startOf(toMs - 1, bucket) + BUCKET_MS[bucket],
    })
  }

  async get(tenant: TenantId, traceId: string): Promise<DispatchDetail> {
    const dispatch = await this.#find(tenant, traceId)
    const [input, output] = await Promise.all([
      dispatch.keeps_payloads ? this.#dispatches.input(tenant, traceId) : undefined,
      this.#keptOutput(tenant, dispatch),
    ])
    return {
      ...summaryOf(tenant, dispatch),
      input: input ?? null,
      raw_output: output?.raw_output ?? null,
      output: output?.output ?? null,
      ...(output?.problems && { problems: output.problems }),
    }
  }

  /**
   * The events of an execution from its stored record, each with its original time. An execution that has not ended has no terminal event.
   * Throws `invalid_request` for a speed outside 0.1 to 100.
   */
  async replay(tenant: TenantId, traceId: string, options: ReplayOptions = {}): Promise<ReplayStream> {
    assertSpeed(options.speed)
    const dispatch = await this.#find(tenant, traceId)
    const output = options.isForCaller
      ? await this.#dispatches.output(tenant, dispatch)
      : await this.#keptOutput(tenant, dispatch)
    return new ReplayStream(framesOf(dispatch, output), { ...options, hasEnded: dispatch.ended_at !== null })
  }

  async #find(tenant: TenantId, traceId: string): Promise<Dispatch> {
    const [dispatch, oldestMs] = await Promise.all([this.#dispatches.get(tenant, traceId), this.#oldestMs(tenant)])
    if (dispatch && this.#isKept(dispatch, oldestMs)) return dispatch
    throw notFound(`no dispatch ${traceId}: it never existed, or its retention time is over`)
  }

  /** An answer that is only stored for waiting clients is not part of the history. */
  async #keptOutput(tenant: TenantId, dispatch: Dispatch): Promise<DispatchOutput | undefined> {
    return dispatch.keeps_payloads ? this.#dispatches.output(tenant, dispatch) : undefined
  }

  #isKept(dispatch: Dispatch, oldestMs: number): boolean {
    return Date.parse(dispatch.started_at) >= oldestMs || isKeptByDeadline(dispatch, this.#now().getTime())
  }

  async #oldestMs(tenant: TenantId): Promise<number> {
    return this.#now().getTime() - DAY_MS * (await this.#retentionDays(tenant))
  }
}

function summaryOf(tenant: TenantId, dispatch: Dispatch): DispatchSummary {
  const { flow, error } = dispatch
  return {
    trace_id: dispatch.trace_id,
    kind: dispatch.kind,
    tenant,
    subject: dispatch.subject,
    flow: { name: flow.name, version: flow.version },
    provider_instance: dispatch.provider_instance,
    served_instance: dispatch.served_instance,
    model: dispatch.model,
    idempotency_key: dispatch.idempotency_key,
    status: dispatch.status,
    error: error && shownFailure(error),
    started_at: dispatch.started_at,
    ended_at: dispatch.ended_at,
    ...(dispatch.deadline_at !== undefined && { deadline_at: dispatch.deadline_at }),
    duration_ms: dispatch.duration_ms,
    turns: dispatch.turns,
    input_tokens: dispatch.input_tokens,
    output_tokens: dispatch.output_tokens,
    cost_usd: dispatch.cost_usd,
  }
}

import type { RunEvent, WarningEvent } from '../../kernel/events.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics, RunEndCode } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { traceFields } from '../../kernel/trace.ts'
import type { RunUsage } from '../../tenancy/usage/port.ts'
import type { UsageSink } from '../../tenancy/usage/recorder.ts'
import type { RunAbout, RunKind } from './run.ts'
import { RunFigures } from './run-figures.ts'

/** What a line names its run by. */
export type ReportedRun = {
  tenant: TenantId
  run_id: string
  kind: RunKind | 'step'
  session_id?: string | undefined
  /** Of the step of a plan. */
  plan_id?: string
  step_id?: string
}

/** Writes a line and counts when a run, a message, a flow, a plan or a step of one has ended. */
export class RunReporter {
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #usage: UsageSink | undefined

  /** `usage` is missing in a process without a store. */
  constructor(log: Log, metrics: Metrics, usage?: UsageSink) {
    this.#log = log
    this.#metrics = metrics
    this.#usage = usage
  }

  /** Returns the function that takes the events of one run; the last one makes the report. */
  open({
    about = {},
    ...run
  }: ReportedRun & { about?: RunAbout | undefined }): (event: RunEvent, isLast: boolean) => void {
    const figures = new RunFigures()
    const { subject } = traceFields() // Of the caller, while the run begins to exist.
    const used: UsedBy = { ...about, subject, kind: run.kind }
    return (event, isLast) => {
      const failover = figures.note(event)
      if (failover) this.#reportFailover(run, failover)
      if (isLast) this.#reportEnd(run, figures)
      if (isLast && run.kind !== 'plan') this.#usage?.add(run.tenant, usageOf(used, figures))
    }
  }

  #reportFailover(run: ReportedRun, { detail: { from, to, reason } }: WarningEvent): void {
    this.#log.warn('another model took over', { ...run, from, to, reason })
  }

  #reportEnd(run: ReportedRun, figures: RunFigures): void {
    const { code, model, turns, spent, firstTokenMs, ms } = figures
    this.#count(figures, run.kind)
    this.#log[HARMLESS.has(code) ? 'info' : 'warn'](`${run.kind} ended`, {
      ...run,
      code,
      model,
      turns,
      ...spent,
      ms: Math.round(ms),
      ...(firstTokenMs !== undefined && { first_token_ms: Math.round(firstTokenMs) }),
    })
  }

  /** A plan itself calls no model: its steps are counted. */
  #count({ code, requests, spent, firstTokenMs, ms }: RunFigures, kind: ReportedRun['kind']): void {
    const metrics = this.#metrics
    metrics.countDivided('runs_ended', code)
    if (kind === 'plan') return
    for (const outcome of OUTCOMES)
      if (requests[outcome] > 0) metrics.countDivided('provider_requests', outcome, requests[outcome])
    metrics.countDivided('tokens', 'input', spent.input_tokens)
    metrics.countDivided('tokens', 'output', spent.output_tokens)
    metrics.count('cost_usd', spent.cost_usd)
    metrics.observe('run_duration_seconds', ms / 1_000)
    if (firstTokenMs !== undefined) metrics.observe('run_first_token_seconds', firstTokenMs / 1_000)
  }
}

type UsedBy = RunAbout & Pick<ReportedRun, 'kind'> & { subject: string | undefined }

const usageOf = (
  { kind, flow, customer_id: customer, subject }: UsedBy,
  { code, model, spent, ms }: RunFigures,
): RunUsage => ({ kind, model, flow, customer, subject, hasFailed: !HARMLESS.has(code), ...spent, ms })

const OUTCOMES = ['ok', 'retried', 'failed_over', 'failed'] as const

/** Ends that no operator needs to look at. */
const HARMLESS: ReadonlySet<RunEndCode> = new Set<RunEndCode>(['ok', 'invalid_output', 'cancelled', 'session_deleted'])

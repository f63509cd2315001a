import type { RunSummary } from '../../cluster/commands/runs.ts'
import type { RunEvent, WarningEvent } from '../../kernel/events.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics, RunEndCode } from '../../kernel/metrics.ts'
import { isoTime } from '../../kernel/time.ts'
import { traceFields } from '../../kernel/trace.ts'
import { pairOf, type RunUsage } from '../../tenancy/usage/port.ts'
import type { UsageSink } from '../../tenancy/usage/recorder.ts'
import { describeRun, type RunFacts } from './records/record.ts'
import type { RunRecorder } from './records/recorder.ts'
import type { NotedFrame, RunRecording } from './records/recording.ts'
import { RunFigures } from './run-figures.ts'
import type { EarlierEvents, KeptRequest, RunIdentity, RunKind } from './run-identity.ts'

export type ReportableRun = Pick<RunIdentity, 'id' | 'tenant' | 'sessionId'> & {
  about?: RunIdentity['about'] | undefined
  kind: RunKind
  startedAt: Date
}

/** Collects the report of one run from its events. */
export type RunReport = {
  note(event: RunEvent, of: NotedFrame): void
  /** Adds events that another process has sent. */
  restore?(earlier: EarlierEvents): void
  /** Another process continues the run, so it does not end here. */
  abandon(): void
  /** The fields that describe the run, and its usage so far. */
  readonly details: Partial<RunSummary>
  /** The phases of the run, if its events are kept. */
  readonly phases?: RunSummary['phases']
  /** The request that started the run, if its events are kept. */
  readonly request?: RunSummary['request']
  readonly isRecorded: boolean
  readonly isReplayable?: boolean
  readonly isRecordedWhole?: boolean
}

export type RunReporterDeps = {
  log: Log
  metrics: Metrics
  /** `undefined` without a store. */
  usage?: UsageSink | undefined
  /** `undefined` without a store: no run is recorded. */
  recorder?: Pick<RunRecorder, 'begin'> | undefined
}

/** Logs, counts and records the end of each run, message, flow, plan and plan step. */
export class RunReporter {
  readonly #deps: RunReporterDeps

  constructor(deps: RunReporterDeps) {
    this.#deps = deps
  }

  /** Follows a run of this process. */
  openRun({ id, tenant, sessionId, kind, startedAt, about }: ReportableRun): RunReport {
    const { customer_id, metadata, attachments, flow, trace_id, plan_id, title, deadline_at, request } = about ?? {}
    const started_at = isoTime(startedAt.getTime())
    const named = { run_id: id, tenant, session_id: sessionId, kind, started_at, customer_id, metadata, attachments }
    return this.open({ ...named, flow, trace_id, plan_id, title, deadline_at }, request)
  }

  open(known: RunFacts, request?: KeptRequest): RunReport {
    const { request_id, subject } = traceFields()
    const facts = { ...known, request_id, subject }
    const figures = new RunFigures()
    // A plan has records of its own: this run is only the part that one executor carries out.
    const recording = known.kind === 'plan' ? undefined : this.#deps.recorder?.begin(facts, figures, request)
    return new Report(facts, figures, { reporter: this, recording })
  }

  onEnded(facts: RunFacts, figures: RunFigures): void {
    this.#reportEnd(facts, figures)
    if (facts.kind !== 'plan') this.#deps.usage?.add(facts.tenant, usageOf(facts, figures))
  }

  reportFailover(run: RunFacts, { detail: { from, to, reason } }: WarningEvent): void {
    this.#deps.log.warn('another model took over', { ...namesOf(run), from, to, reason })
  }

  #reportEnd(run: RunFacts, figures: RunFigures): void {
    const { code = 'internal', model, turns, spent, firstTokenMs, ms } = figures
    this.#count(figures, run.kind)
    this.#deps.log[HARMLESS.has(code) ? 'info' : 'warn'](`${run.kind} ended`, {
      ...namesOf(run),
      code,
      model,
      turns,
      ...spent,
      ms: Math.round(ms),
      ...(firstTokenMs !== undefined && { first_token_ms: Math.round(firstTokenMs) }),
    })
  }

  /** A plan itself calls no model: its steps are counted instead. */
  #count({ code = 'internal', requests, spent, firstTokenMs, ms }: RunFigures, kind: RunFacts['kind']): void {
    const { metrics } = this.#deps
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

type Reported = { reporter: RunReporter; recording: RunRecording | undefined }

/** A class, because each run keeps its report: an object with seven functions of its own would take a kilobyte more. */
class Report implements RunReport {
  readonly #facts: RunFacts
  readonly #figures: RunFigures
  readonly #reporter: RunReporter
  readonly #recording: RunRecording | undefined

  constructor(facts: RunFacts, figures: RunFigures, { reporter, recording }: Reported) {
    this.#facts = facts
    this.#figures = figures
    this.#reporter = reporter
    this.#recording = recording
  }

  note(event: RunEvent, frame: NotedFrame): void {
    const failover = this.#figures.note(event)
    if (failover) this.#reporter.reportFailover(this.#facts, failover)
    this.#recording?.note(event, frame)
    if (frame.isLast) this.#reporter.onEnded(this.#facts, this.#figures)
  }

  restore({ events, reserved }: EarlierEvents): void {
    for (const [, event] of events) this.#figures.note(event)
    this.#recording?.restore(events, reserved)
  }

  abandon(): void {
    this.#recording?.abandon()
  }

  get details() {
    return describeRun(this.#facts, this.#figures)
  }

  get phases() {
    return this.#recording?.phases
  }

  get request() {
    return this.#recording?.request
  }

  get isRecorded(): boolean {
    return this.#recording?.isRecorded ?? false
  }

  get isReplayable(): boolean {
    return this.#recording?.isReplayable ?? false
  }

  /** A run that has called tools has files and permission requests, too, which its record has not. */
  get isRecordedWhole(): boolean {
    return this.isReplayable && this.#figures.toolCalls === 0
  }
}

/** The fields that identify a run in a log line. */
const namesOf = ({ tenant, run_id, kind, session_id, plan_id, step_id }: RunFacts) => ({
  tenant,
  run_id,
  kind,
  ...(session_id !== undefined && { session_id }),
  ...(plan_id !== undefined && { plan_id, step_id }),
})

const usageOf = (
  { kind, flow, customer_id: customer, subject, metadata }: RunFacts,
  { code = 'internal', model, spent, ms }: RunFigures,
): RunUsage => ({
  ...{ kind, model, flow, customer, subject, hasFailed: !HARMLESS.has(code), ms },
  isInvalid: code === 'invalid_output',
  ...spent,
  ...(metadata && { metadata: Object.entries(metadata).map(pairOf) }),
})

const OUTCOMES = ['ok', 'retried', 'failed_over', 'failed'] as const

/** End codes that need no attention of an operator. */
const HARMLESS: ReadonlySet<RunEndCode> = new Set<RunEndCode>(['ok', 'invalid_output', 'cancelled', 'session_deleted'])

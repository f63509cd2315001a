import { conflict, invalidRequest, toAppError } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { ApiType } from '../../../platform/api/api-type.ts'
import type { StartedFlow } from '../calls/calls.ts'
import type { CompileFlow } from '../compile.ts'
import { refusalOf } from '../execute/outcome.ts'
import type { FlowLibrary } from '../library.ts'
import type { Dispatch, DispatchStatus, DispatchStore, Flow, FlowRef } from '../port.ts'
import type { Execution } from '../transitions.ts'
import type { FlowEvaluationStore } from './evaluation-store.ts'
import { recordOf } from './history.ts'
import { compare, type EvaluatedRun, type EvaluationReport, type Measured, summarize } from './report.ts'

export type EvaluatorDeps = {
  library: Pick<FlowLibrary, 'get' | 'saveEvaluation'>
  evaluations: Pick<FlowEvaluationStore, 'add'>
  compile: CompileFlow
  dispatches: Pick<DispatchStore, 'list' | 'get' | 'input' | 'output'>
  execute(tenant: TenantId, execution: Execution): Promise<StartedFlow>
  now(): Date
}

/** Body of `POST /flows/{name}/evaluate` (D13.1). Without an instance or a model: those of each recorded execution. */
export type EvaluateRequest = ApiType<'FlowEvaluationRequest'>

const DEFAULT_LIMIT = 10
/** Executions under way at a time. */
const CONCURRENCY = 4

/**
 * Runs the newest version of a flow on the inputs of the last executions of its published version, and compares (issue "publish gate").
 * The result is stored for `publish?require_pass_rate=`, and listed (D26.2).
 */
export class FlowEvaluator {
  readonly #deps: EvaluatorDeps

  constructor(deps: EvaluatorDeps) {
    this.#deps = deps
  }

  /** Throws `not_found`, `invalid_request` when the version does not compile, `conflict` when there is nothing to compare with. */
  async evaluate(
    tenant: TenantId,
    name: string,
    request: EvaluateRequest,
    caller: { subject: string; signal: AbortSignal },
  ): Promise<EvaluationReport> {
    const { library, compile, evaluations, now } = this.#deps
    const flow = await library.get(tenant, name)
    const compiled = await compile(tenant, flow.definition)
    if ('problems' in compiled) throw invalidRequest(compiled.problems[0].message, { param: compiled.problems[0].path })
    const recorded = await this.#recorded(tenant, flow, request.limit ?? DEFAULT_LIMIT)
    const runs = await inTurn(recorded, (dispatch) => this.#rerun(tenant, { flow, dispatch, request, ...caller }))
    const report = summarize(flow, runs)
    await evaluations.add(tenant, flow.uid, recordOf(report, { subject: caller.subject, at: now() }))
    await library.saveEvaluation(tenant, flow, { pass_rate: report.pass_rate, runs: runs.length })
    return report
  }

  async #recorded(tenant: TenantId, flow: Flow, limit: number): Promise<Dispatch[]> {
    const { dispatches } = this.#deps
    const { name, uid, published_version: version } = flow
    const recorded =
      version === null ? [] : await recentExecutions(dispatches, { tenant, flow: { name, uid, version }, limit })
    if (recorded.length > 0) return recorded
    throw conflict(
      `no execution of a published version of ${flow.name} is recorded with its input: publish it and run it first`,
    )
  }

  async #rerun(tenant: TenantId, { flow, dispatch, request, subject, signal }: Rerun): Promise<EvaluatedRun> {
    signal.throwIfAborted()
    const input = (await this.#deps.dispatches.input(tenant, dispatch.trace_id)) ?? {}
    const execution: Execution = {
      kind: 'evaluation',
      flow,
      request: {
        input,
        provider_instance: request.provider_instance ?? dispatch.provider_instance,
        model: request.model ?? flow.definition.model ?? dispatch.model,
      },
      subject,
      idempotencyKey: undefined,
    }
    const published = await this.#measured(tenant, dispatch)
    return compare(await this.#measure(tenant, execution, signal), published)
  }

  /** A failure counts as a result, too. */
  async #measure(tenant: TenantId, execution: Execution, signal: AbortSignal): Promise<Measured> {
    let started: StartedFlow
    try {
      started = await this.#deps.execute(tenant, { ...execution, readsEnd: true })
    } catch (cause) {
      const refusal = toAppError(cause)
      return { ...NOTHING, trace_id: refusal.traceId ?? null, error: refusalOf(refusal) }
    }
    await started.answer(signal).catch(() => {}) // The record has the failure.
    signal.throwIfAborted()
    const dispatch = await this.#deps.dispatches.get(tenant, started.traceId)
    return dispatch ? this.#measured(tenant, dispatch) : { ...NOTHING, trace_id: started.traceId }
  }

  async #measured(tenant: TenantId, dispatch: Dispatch): Promise<Measured & { trace_id: string }> {
    const { trace_id, status, cost_usd, duration_ms, error } = dispatch
    const output = await this.#deps.dispatches.output(tenant, dispatch)
    const verdict = status === 'ok' || status === 'invalid_output' ? status : null
    return { trace_id, verdict, output: output?.output ?? null, cost_usd, duration_ms: duration_ms ?? 0, error }
  }
}

type Rerun = { flow: Flow; dispatch: Dispatch; request: EvaluateRequest; subject: string; signal: AbortSignal }

const NOTHING: Omit<Measured, 'trace_id'> = { verdict: null, output: null, cost_usd: 0, duration_ms: 0, error: null }

/** Maps the items, a few at a time, in their order. */
async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Map<number, R>()
  const waiting = items.entries()
  const lane = async () => {
    for (const [i, item] of waiting) results.set(i, await work(item))
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, lane))
  return [...results].toSorted(([a], [b]) => a - b).map(([, result]) => result)
}

const PAGE = 200
/** How many pages of a flow's newest executions are read. */
const MAX_PAGES = 5

const HAS_RUN: ReadonlySet<DispatchStatus> = new Set(['ok', 'invalid_output', 'error'])

/** The newest executions of a version that have ended and whose inputs are kept, newest first, at most `limit`. */
async function recentExecutions(
  dispatches: Pick<DispatchStore, 'list'>,
  { tenant, flow, limit }: { tenant: TenantId; flow: FlowRef; limit: number },
): Promise<Dispatch[]> {
  const found: Dispatch[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES && found.length < limit; pages++) {
    const page = await dispatches.list(tenant, { kind: 'run', flow: flow.name, limit: PAGE, cursor })
    found.push(...page.dispatches.filter((dispatch) => isUsable(dispatch, flow)))
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  return found.slice(0, limit)
}

const isUsable = ({ status, keeps_payloads: isKept, flow }: Dispatch, { uid, version }: FlowRef): boolean =>
  HAS_RUN.has(status) && isKept && flow.uid === uid && flow.version === version

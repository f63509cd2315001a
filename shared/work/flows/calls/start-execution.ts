import type { Files } from '../../../agent/files/files.ts'
import type { Broker } from '../../../cluster/commands/broker.ts'
import type { KnownExecutors } from '../../../cluster/members/executors.ts'
import { retryUntil } from '../../../kernel/async/retry.ts'
import { AppError, invalidRequest, toAppError } from '../../../kernel/errors.ts'
import { runIdOf } from '../../../kernel/ids.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { SchemaChecker, SchemaCheckers } from '../../../platform/schemas/port.ts'
import type { Admission } from '../../../tenancy/limits/admission.ts'
import { turnOf } from '../../../tenancy/limits/start-lines.ts'
import type { Audit, TenantConfig } from '../../../tenancy/tenant-config/config.ts'
import { resolveInstance } from '../../../tenancy/tenant-config/credentials.ts'
import type { LiveConfigs } from '../../../tenancy/tenant-config/live-configs.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { CompileFlow } from '../compile.ts'
import { RETRY_SECS, refusalOf, withTrace } from '../execute/outcome.ts'
import { inputFiles } from '../input-files.ts'
import type { Dispatch, Dispatches, FlowDefinition, FlowRoute, FlowRunRequest } from '../port.ts'
import { type Execution, endBy, isLost, jobOf, newDispatch, notStarted, rejected } from '../transitions.ts'

export type StartDeps = {
  compile: CompileFlow
  checkers: SchemaCheckers
  dispatches: Pick<Dispatches, 'create' | 'end'>
  configs: Pick<LiveConfigs, 'get'>
  queue: Pick<JobQueue, 'add'>
  /** Left out if no client waits for the run. */
  broker?: Pick<Broker, 'expectRun'>
  files: Pick<Files, 'attached'>
  executors: KnownExecutors
  /** Rejects with `rate_limit` when the tenant's limits allow no further run. */
  admission: Pick<Admission, 'admit' | 'release'>
  /** `false`: records are kept only as long as running work needs them (DISPATCH_STORE). */
  keepsHistory: boolean
  now: () => Date
}

/** For how long, and how often, the end of a refused execution is sent to a store that does not answer. */
const END_WITHIN_MS = 60_000
const END_EVERY_MS = 500

const noRoom = (retryAfterSecs: number) =>
  new AppError('rate_limit', 'no run of this tenant has ended in time to make room', {
    code: 'no_room',
    retryAfterSecs,
  })
export const clientLeft = () => new AppError('unavailable', 'the client has left before the run had a place')

const NO_HISTORY: Audit = { store_payloads: false, retention_days: 1 }

/**
 * Checks an execution, stores its dispatch and queues its job. A refusal is stored as a `rejected` dispatch, and thrown with the
 * trace id (D6.5).
 */
export async function startExecution(
  tenant: TenantId,
  traceId: string,
  { execution, deps }: { execution: Execution; deps: StartDeps },
): Promise<void> {
  const config = await deps.configs.get(tenant)
  const requested = requestedDispatch(execution, traceId, { config, deps })
  const dispatch = await admit(execution, { tenant, config, requested, deps }).catch(async (cause: unknown) => {
    const refusal = toAppError(cause)
    if (execution.kind === 'batch' && refusal.kind === 'unavailable') throw refusal // No client repeats an item, so it is tried again here.
    await deps.dispatches.create(tenant, rejected(requested, refusal), execution.request.input)
    throw withTrace(refusal, traceId)
  })
  try {
    await deps.dispatches.create(tenant, dispatch, execution.request.input)
    await enqueue(tenant, dispatch, { ...deps, readsEnd: execution.readsEnd })
  } catch (cause) {
    deps.admission.release({ tenant, runId: runIdOf(traceId) })
    throw cause
  }
}

/**
 * Makes sure that no execution begins under this id any more: it is stored as refused, so that a late insert finds the id taken. Returns
 * `false` when an execution has begun, or is queued.
 */
export async function closeExecution(
  tenant: TenantId,
  traceId: string,
  { execution, deps }: { execution: Execution; deps: ClosingDeps },
): Promise<boolean> {
  const { dispatches } = deps
  const found = await dispatches.get(tenant, traceId)
  if (found) return isLost(found)
  const config = await deps.configs.get(tenant)
  const requested = requestedDispatch(execution, traceId, { config, deps })
  await dispatches.create(tenant, rejected(requested, notStarted()), execution.request.input)
  const closed = await dispatches.get(tenant, traceId)
  return closed !== undefined && isLost(closed)
}

type ClosingDeps = Pick<StartDeps, 'configs' | 'keepsHistory' | 'now'> & {
  dispatches: Pick<Dispatches, 'create' | 'get'>
}

function requestedDispatch(
  execution: Execution,
  traceId: string,
  { config, deps }: { config: TenantConfig; deps: Pick<StartDeps, 'keepsHistory' | 'now'> },
): Dispatch {
  const audit = deps.keepsHistory ? config.audit : NO_HISTORY
  return newDispatch(execution, { traceId, audit, at: deps.now() })
}

type Asked = { tenant: TenantId; config: TenantConfig; requested: Dispatch; deps: StartDeps }

export type CheckDeps = Pick<StartDeps, 'compile' | 'checkers' | 'files' | 'executors'>

/** The dispatch with its instances and models. Throws when the request or the flow cannot be executed, or the tenant's limits allow no run. */
async function admit(execution: Execution, { tenant, config, requested, deps }: Asked): Promise<Dispatch> {
  const { primary, fallback } = await checkExecution(execution, { tenant, config, deps })
  const { request, left, onWait } = execution
  const { priority, wait_secs: waitSecs, deadline_hours: hours } = request
  const start = { tenant, runId: runIdOf(requested.trace_id), priority, waitSecs }
  const wait = hours === undefined ? await deps.admission.admit(start) : undefined // A flow with a deadline waits at its executor instead.
  if (wait) onWait?.({ traceId: requested.trace_id, wait })
  if (wait && (await turnOf(wait, left)) === 'late') throw noRoom(wait.retryAfterSecs)
  if (wait && left?.aborted) {
    deps.admission.release(start)
    throw clientLeft()
  }
  const begun = wait && { started_at: deps.now().toISOString() } // Its time in the queue begins now.
  return { ...requested, ...begun, provider_instance: primary.instance, model: primary.model, fallback }
}

/** Checks a request, and loads what its execution needs; the input is checked first (api.md "Named flows" 2). It changes nothing. */
export async function checkExecution(
  { flow, request }: Execution,
  { tenant, config, deps }: Pick<Asked, 'tenant' | 'config'> & { deps: CheckDeps },
) {
  const { compile, checkers, executors } = deps
  if (request.deadline_hours !== undefined && request.wait_secs !== undefined)
    throw invalidRequest('a flow with deadline_hours waits for its place until then: leave wait_secs out', {
      param: '/wait_secs',
    })
  const compiled = await compile(tenant, flow.definition, { wasPublished: true })
  if ('problems' in compiled) {
    const [{ path, message }] = compiled.problems
    throw invalidRequest(`version ${flow.version} of the flow cannot be run any more: ${message}`, { param: path })
  }
  await checkInput(flow.definition, request, checkers.of(tenant))
  const files = await inputFiles(tenant, { schema: flow.definition.input_schema, input: request.input }, deps.files)
  const routes = routesOf(flow.definition, request, config)
  if (!executors.hasAny()) {
    throw new AppError('unavailable', 'no executor is running at the moment; try again', { retryAfterSecs: RETRY_SECS })
  }
  return { compiled, files, ...routes }
}

type Enqueuing = Pick<StartDeps, 'queue' | 'broker' | 'dispatches'> & { readsEnd: boolean | undefined }

async function enqueue(
  tenant: TenantId,
  dispatch: Dispatch,
  { queue, broker, dispatches, readsEnd = false }: Enqueuing,
): Promise<void> {
  const { trace_id: traceId } = dispatch
  const reader = broker?.expectRun?.(tenant, runIdOf(traceId))
  try {
    await queue.add({ ...jobOf(tenant, dispatch), ...(reader && { reader: { ...reader, readsEnd } }) }, { isNew: true })
  } catch (cause) {
    const failure = toAppError(cause)
    const result = endBy(dispatch, { type: 'not_queued', failure: refusalOf(failure) })
    const end = async () => result && dispatches.end(tenant, traceId, { executor: null, result })
    const ended = await end().catch((unanswered: unknown) => {
      const until = performance.now() + END_WITHIN_MS // The queue may still add the job, though it has not answered.
      retryUntil(end, { pauses: END_EVERY_MS, until, ref: false }).catch(() => {})
      throw unanswered
    })
    if (ended) throw withTrace(failure, traceId) // If not, only the answer was lost and an executor has begun the job.
  }
}

/** The instances and models of a call; the names are names of instances, never of types. */
export type AdmittedRoutes = { primary: FlowRoute; fallback: FlowRoute | null }

/**
 * Chooses the instances and models of a call (api.md "Named flows" 3 and 6). Throws `invalid_request` for an unknown or ambiguous
 * instance, a missing model, and half a fallback.
 */
export function routesOf(
  { model: ownModel, sub_agents: subAgents }: FlowDefinition,
  request: Omit<FlowRunRequest, 'input'>,
  config: TenantConfig,
): AdmittedRoutes {
  const model = request.model ?? ownModel
  if (model === undefined) {
    const { main } = config.routing
    const example = main ? `, such as ${main.model}, which the route main runs on ${main.instance}` : ''
    throw invalidRequest(`neither the request nor the flow names a model: send model${example}`, { param: '/model' })
  }
  const instance = resolveInstance(config, request.provider_instance, '/provider_instance').name
  for (const [i, { provider_instance: own }] of subAgents.entries()) {
    if (own !== undefined) resolveInstance(config, own, `/sub_agents/${i}/provider_instance`)
  }
  return { primary: { instance, model }, fallback: fallbackOf(request, config) }
}

function fallbackOf(
  { fallback_instance: instance, fallback_model: model }: Omit<FlowRunRequest, 'input'>,
  config: TenantConfig,
): FlowRoute | null {
  if (instance === undefined && model === undefined) return null
  if (instance === undefined || model === undefined) {
    throw invalidRequest('fallback_instance and fallback_model must be given together', {
      param: instance === undefined ? '/fallback_instance' : '/fallback_model',
    })
  }
  return { instance: resolveInstance(config, instance, '/fallback_instance').name, model }
}

/** Throws `invalid_request` that names the first wrong field of the input. */
export async function checkInput(
  { input_schema: schema }: FlowDefinition,
  { input }: Pick<FlowRunRequest, 'input'>,
  checker: Pick<SchemaChecker, 'check'>,
): Promise<void> {
  const [problem] = await checker.check(schema, input)
  if (!problem) return
  throw invalidRequest(`the input does not fit the flow's input_schema: ${problem.message}`, {
    param: `/input${problem.path}`,
  })
}

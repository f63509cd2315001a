import { setTimeout as sleep } from 'node:timers/promises'
import { mayWaitForBatches } from '../../shared/agent/providers/batch/pool/pool.ts'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import { hasKind, toAppError } from '../../shared/kernel/errors.ts'
import { runIdOf } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { HOUR_MS } from '../../shared/kernel/time.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import type { PlacedRun } from '../../shared/tenancy/limits/port.ts'
import { turnOf } from '../../shared/tenancy/limits/start-lines.ts'
import { BATCH_ITEMS } from '../../shared/tenancy/limits/start-order.ts'
import { maySendInBatches } from '../../shared/work/flows/batch/batch.ts'
import type { Dispatch, DispatchStore } from '../../shared/work/flows/port.ts'
import type { StoredFlows } from '../../shared/work/flows/stored-flows.ts'
import { isEnded } from '../../shared/work/flows/transitions.ts'
import type { Advanced, BatchWaves } from './batch-waves.ts'
import type { FlowJobs } from './flow-jobs.ts'
import { GIVEN_BACK, type Settled } from './job-ends.ts'

/** The pause before a new request for a place if the queue is full, or cannot be reached. */
const WAIT_MS = 5_000
/** How often a waiting flow is checked for a cancel. */
const LOOK_EVERY_MS = 1_000

export type PlacesDeps = { admission: Pick<Admission, 'admit'>; now: () => Date }

type Waiting = { deadline: string; signal: AbortSignal }

/** Gives a run that no client waits for its place among the runs of its tenant (D55.2). */
export const placeOf = (tenant: TenantId, traceId: string): PlacedRun => ({
  ...{ tenant, runId: runIdOf(traceId), customer: BATCH_ITEMS },
})

/** Waits in the tenant's queue for a place, until the deadline of the flow. The budget is checked by the first model call. */
export async function waitForPlace(
  place: PlacedRun,
  { deadline, signal }: Waiting,
  { admission, now }: PlacesDeps,
): Promise<'placed' | 'late' | 'left'> {
  for (;;) {
    const waitSecs = (Date.parse(deadline) - now().getTime()) / 1_000
    if (signal.aborted || waitSecs <= 0) return signal.aborted ? 'left' : 'late'
    try {
      const wait = await admission.admit({ ...place, priority: 'batch', waitSecs })
      return wait ? await turnOf(wait, signal) : 'placed'
    } catch (cause) {
      const { kind, code, retryAfterSecs = 1 } = toAppError(cause)
      if (code === 'budget_exhausted') return 'placed'
      if (kind !== 'rate_limit' && kind !== 'unavailable') throw cause
      await sleep(Math.min(WAIT_MS, 1_000 * retryAfterSecs), undefined, { signal }).catch(() => {})
    }
  }
}

/** How often, and for how long, a check that found no place is repeated. */
const CHECK_AGAIN_MS = [100, 2_000] as const
const CHECK_WITHIN_MS = 600_000

/** The checks of runs that no client waits for: they are not refused only because the tenant has many other checks at the moment. */
export const patientChecks = (checkers: SchemaCheckers): SchemaCheckers => ({
  of(tenant) {
    const checker = checkers.of(tenant)
    const patiently = <T>(check: () => Promise<T>) =>
      retryUntil(check, {
        pauses: CHECK_AGAIN_MS,
        mayPass: (cause) => hasKind(cause, 'rate_limit') || hasKind(cause, 'unavailable'),
        ...{ until: performance.now() + CHECK_WITHIN_MS, ref: false },
      })
    return {
      check: (...given) => patiently(() => checker.check(...given)),
      findUnusable: (...given) => patiently(() => checker.findUnusable(...given)),
    }
  },
  close: () => checkers.close(),
})

export type UnhurriedDeps = PlacesDeps & {
  dispatches: Pick<DispatchStore, 'get' | 'input' | 'park'>
  library: Pick<StoredFlows, 'definitionOf'>
  flows: Pick<FlowJobs, 'handle' | 'answers'>
  /** Left out: all calls go to the live API. */
  waves?: Pick<BatchWaves, 'advance'>
}

type Handling = UnhurriedDeps & { leaving: AbortSignal }

/**
 * Runs a flow that has time until its deadline (D54.8), as soon as its calls have their answers (D58.7) and its tenant has a place for it; at its deadline in any case, when it ends by that. While
 * it waits for a vendor its job is over: it is queued again when the vendor may have news. Throws `unavailable` when the store is away.
 */
export async function runUnhurried(tenant: TenantId, id: string, { leaving, ...deps }: Handling): Promise<Settled> {
  const { dispatches, flows } = deps
  const dispatch = await dispatches.get(tenant, id)
  const advanced = dispatch && (await advance(tenant, dispatch, { leaving, ...deps }))
  const waits = advanced !== undefined && advanced.waiting.size > 0
  if (waits && !leaving.aborted)
    return (await dispatches.park(tenant, id, advanced.lookAtMs)) ? { end: undefined } : undefined
  if (dispatch && isQueued(dispatch)) await placed(tenant, dispatch, { leaving, ...deps })
  if (leaving.aborted && isQueued(await dispatches.get(tenant, id))) return GIVEN_BACK
  if (advanced && advanced.answers.size > 0) flows.answers.set(id, advanced.answers)
  return { end: await flows.handle({ kind: 'flow', tenant, id }).finally(() => flows.answers.delete(id)) }
}

/** Takes the calls of a flow through the pool as those of a batch of one item. `undefined` for one whose calls go live. */
async function advance(
  tenant: TenantId,
  dispatch: Dispatch,
  { waves, library, dispatches, leaving }: Handling,
): Promise<Advanced | undefined> {
  const { trace_id: batch_id, flow, model, provider_instance, started_at, deadline_at = started_at } = dispatch
  const hours = (Date.parse(deadline_at) - Date.parse(started_at)) / HOUR_MS
  if (!waves || !mayWaitForBatches(hours)) return undefined
  const definition = await library.definitionOf(tenant, flow)
  if (definition && !maySendInBatches(definition)) return undefined
  const input = (await dispatches.input(tenant, batch_id)) ?? {}
  const status = isEnded(dispatch) ? 'cancelling' : 'running'
  return waves.advance(tenant, {
    batch: { flow, model, vendor_instance: provider_instance, status, created_at: started_at, deadline_at },
    chunk: { batch_id, chunk: 0, first: 0, ends: [null], items: [{ input }] },
    ...{ definition, leaving, unbegun: new Set(isQueued(dispatch) ? [0] : []) },
  })
}

const isQueued = (dispatch: Dispatch | undefined): boolean => dispatch?.status === 'queued'

/** Resolves when the flow has a place, needs none any more, or this process shuts down. */
async function placed(
  tenant: TenantId,
  { trace_id: id, deadline_at: deadline = '' }: Dispatch,
  { leaving, dispatches, ...deps }: PlacesDeps & Pick<Handling, 'dispatches' | 'leaving'>,
): Promise<void> {
  const over = new AbortController()
  const look = async () => {
    if (!isQueued(await dispatches.get(tenant, id))) over.abort()
  }
  const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS).unref()
  const signal = AbortSignal.any([leaving, over.signal])
  await waitForPlace(placeOf(tenant, id), { deadline, signal }, deps).finally(() => clearInterval(timer))
}

import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../shared/kernel/async/retry.ts'
import { hasKind, toAppError } from '../../shared/kernel/errors.ts'
import { runIdOf } from '../../shared/kernel/ids.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { SchemaCheckers } from '../../shared/platform/schemas/port.ts'
import type { Admission } from '../../shared/tenancy/limits/admission.ts'
import type { PlacedRun } from '../../shared/tenancy/limits/port.ts'
import { turnOf } from '../../shared/tenancy/limits/start-lines.ts'
import { BATCH_ITEMS } from '../../shared/tenancy/limits/start-order.ts'
import type { Dispatch, Dispatches } from '../../shared/work/flows/port.ts'
import type { FlowJobs } from './flow-jobs.ts'
import type { Settled } from './job-ends.ts'

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

export type UnhurriedDeps = PlacesDeps & { dispatches: Pick<Dispatches, 'get'>; flows: Pick<FlowJobs, 'handle'> }

/**
 * Runs a flow with a deadline (D54.8) as soon as its tenant has a place for it. At the deadline it begins in any case, and ends at once with
 * `timeout`. Throws `unavailable` when the store is away.
 */
export async function runUnhurried(
  tenant: TenantId,
  id: string,
  { leaving, ...deps }: UnhurriedDeps & { leaving: AbortSignal },
): Promise<Settled> {
  const dispatch = await deps.dispatches.get(tenant, id)
  if (dispatch && isQueued(dispatch)) await placed(tenant, dispatch, { leaving, ...deps })
  if (leaving.aborted && isQueued(await deps.dispatches.get(tenant, id))) return { end: { again: true } }
  return { end: await deps.flows.handle({ kind: 'flow', tenant, id }) }
}

const isQueued = (dispatch: Dispatch | undefined): boolean => dispatch?.status === 'queued'

/** Resolves when the flow has a place, needs none any more, or this process shuts down. */
async function placed(
  tenant: TenantId,
  { trace_id: id, deadline_at: deadline = '' }: Dispatch,
  { leaving, dispatches, ...deps }: UnhurriedDeps & { leaving: AbortSignal },
): Promise<void> {
  const over = new AbortController()
  const look = async () => {
    if (!isQueued(await dispatches.get(tenant, id))) over.abort()
  }
  const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS)
  const signal = AbortSignal.any([leaving, over.signal])
  await waitForPlace(placeOf(tenant, id), { deadline, signal }, deps).finally(() => clearInterval(timer))
}

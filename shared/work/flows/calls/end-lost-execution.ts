import type { FlowFailure } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { JobQueue } from '../../queue/port.ts'
import type { Dispatch, DispatchEnd, Dispatches } from '../port.ts'

/** The executors as this process sees them. */
export interface Executors {
  /** Whether at least one takes new work. */
  hasAny(): boolean
  isAlive(epoch: number): Promise<boolean>
}

export type SettleDeps = {
  dispatches: Pick<Dispatches, 'get' | 'end'>
  executors: Pick<Executors, 'isAlive'>
  queue: Pick<JobQueue, 'add' | 'remove'>
  /** How long this process has known the execution, by its monotonic clock: the wall clocks of processes may differ by hours. */
  knownMs: number
}

/** How long an execution may wait for an executor. */
const MAX_QUEUED_MS = 30_000
/** After this wait a job may have been lost with the queue's Redis: it is added again, which changes nothing when it is still there. */
const REQUEUE_MS = 4_000

export const isEnded = ({ status }: Dispatch): boolean => status !== 'queued' && status !== 'running'

/** Whether an execution has ended without a result of its own, so that the same request may be executed again. */
export const isLost = ({ status, error }: Dispatch): boolean =>
  status === 'rejected' || error?.code === EXECUTOR_LOST.code || error?.status === 503

/**
 * Returns the dispatch when it has ended, or does not exist. One whose executor was lost, or that no executor took in time, is ended
 * here first, by compare-and-set. `'running'` while it waits or goes on; the job of one that waits for long is added again.
 */
export async function settle(
  tenant: TenantId,
  traceId: string,
  deps: SettleDeps,
): Promise<Dispatch | 'running' | undefined> {
  const { dispatches, queue } = deps
  const dispatch = await dispatches.get(tenant, traceId)
  if (!dispatch || isEnded(dispatch)) return dispatch
  const failure = await lossOf(dispatch, deps)
  const { executor } = dispatch
  if (!failure) {
    if (executor === null && deps.knownMs > REQUEUE_MS) await requeue(tenant, traceId, deps)
    return 'running'
  }
  const ended = await dispatches.end(tenant, traceId, { executor, result: failed(dispatch, failure) })
  if (!ended) return settle(tenant, traceId, deps) // Another process was faster.
  if (executor === null) await queue.remove({ kind: 'flow', tenant, id: traceId }).catch(() => {}) // An executor that takes it all the same finds it ended.
  return ended
}

async function lossOf(dispatch: Dispatch, deps: SettleDeps): Promise<FlowFailure | undefined> {
  const { executor } = dispatch
  if (executor !== null) return (await deps.executors.isAlive(executor)) ? undefined : EXECUTOR_LOST
  return deps.knownMs > MAX_QUEUED_MS ? NOT_TAKEN : undefined
}

async function requeue(tenant: TenantId, traceId: string, { queue }: SettleDeps): Promise<void> {
  await queue.add({ kind: 'flow', tenant, id: traceId }).catch(() => {}) // It is tried again at the next look.
}

/** The failure of an execution whose executor died. */
export const EXECUTOR_LOST: FlowFailure = {
  status: 502,
  type: 'upstream_error',
  code: 'worker_lost',
  message: 'the executor of this run was lost; send the request again',
}

const NOT_TAKEN: FlowFailure = {
  status: 503,
  type: 'unavailable_error',
  message: 'no executor had room for this run in time; try again in a moment',
}

/** The end of an execution without an answer. */
export function failed(dispatch: Dispatch, error: FlowFailure): DispatchEnd {
  const { turns, input_tokens, output_tokens, cost_usd } = dispatch
  return { status: 'error', served_instance: null, error, turns, input_tokens, output_tokens, cost_usd }
}

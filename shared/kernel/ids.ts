import { hash, randomUUID } from 'node:crypto'

export type IdPrefix =
  | 'req'
  | 'sess'
  | 'run'
  | 'perm'
  | 'sub'
  | 'chg'
  | 'rev'
  | 'trace'
  | 'flow'
  | 'eval'
  | 'mem'
  | 'plan'
  | 'batch'
  | 'pool'
  | 'hook'
  | 'msg'
  | 'file'
  | 'steer'
  | 'call'

/** Creates a random id: the prefix and 32 hex digits, for example `run_…` (D2.8). */
export function newId<P extends IdPrefix>(prefix: P): `${P}_${string}` {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`
}

/**
 * Creates the id of a run of the standalone form: 12 digits of the time in milliseconds, and 20 random ones. So new runs are added at the end of
 * a store's index, instead of changing a random page for each.
 */
export const newRunId = (nowMs = Date.now()): string =>
  `run_${nowMs.toString(16).padStart(12, '0')}${newId('run').slice(-20)}`

/** Creates a random token of 16 hex digits, which distinguishes things with the same name. */
export function newToken(): string {
  const uuid = randomUUID()
  return uuid.slice(19, 23) + uuid.slice(24)
}

/** The first digits of the ids of queued runs. An epoch is never 0, so these ids belong to no worker. */
const QUEUED = '00000000'

/** The id of a queued execution and of its run, whose digits are the same: `trace_…` and `run_…`. */
export const newTraceId = (): string => `trace_${QUEUED}${newId('trace').slice(-24)}`

export const runIdOf = (traceId: string): string => `run_${traceId.slice('trace_'.length)}`

export const traceIdOf = (runId: string): string => `trace_${runId.slice('run_'.length)}`

/** The id of the execution of an item of a batch, the same at each of its starts: an item is executed once. `item` counts from 1. */
export const itemTraceId = (batchId: string, item: number): string =>
  `trace_${QUEUED}${hash('sha256', `${batchId} ${item}`).slice(0, 24)}`

/** The id of a queued plan, whose run has the same digits. `digits` are hexadecimal, of which the last 24 are used; random by default. */
export const newPlanId = (digits: string = newId('plan')): string => `plan_${QUEUED}${digits.slice(-24)}`

export const planRunId = (planId: string): string => `run_${planId.slice('plan_'.length)}`

export const planIdOf = (runId: string): string => `plan_${runId.slice('run_'.length)}`

/** The id of the run of a step, which differs from attempt to attempt; `attempt` counts from 0. No worker has the run. */
export function stepRunId(planId: string, { stepId, attempt }: { stepId: string; attempt: number }): string {
  const digits = hash('sha256', JSON.stringify([planId, stepId, attempt]))
  return `run_${QUEUED}${digits.slice(0, 24)}`
}

/** The epoch of the worker that a run was started on: its id contains it (8 hex digits). A run of the standalone form has none. */
export const epochOfRun = (runId: string): number => Number.parseInt(runId.slice(4, 12), 16)

/** Whether an id that may be a session's is that of a run. */
export const isRunId = (id: string): boolean => /^run_[0-9a-f]{32}$/.test(id)

/** Whether the run with this id was queued for an executor, rather than started on a worker. */
export const isQueuedRun = (runId: string): boolean => runId.startsWith(`run_${QUEUED}`)

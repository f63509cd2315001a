import type { RunReader } from '../../cluster/commands/runs.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { TraceLink } from '../../kernel/trace.ts'

export const JOB_KINDS = ['flow', 'plan', 'schedule', 'batch'] as const
/**
 * The kinds of queued work. Each has a queue of its own. A job of kind `schedule` is one tick of a schedule, and one of
 * kind `batch` is some items of a batch, or a flow with a deadline.
 */
export type JobKind = (typeof JOB_KINDS)[number]

/**
 * A job holds ids only: everything else is in the store before the job is added. `id` is unique and has no colon. `reader` waits for its run. The queue sets
 * `trace`.
 */
export type Job = { kind: JobKind; tenant: TenantId; id: string; reader?: RunReader; trace?: TraceLink }

/** `oldestWaitingMs` is the age of the job that has waited longest, 0 when none waits. `failed` counts those that are still listed. */
export type JobCounts = { waiting: number; active: number; failed: number; oldestWaitingMs: number }

/**
 * Adds work to the queue. The jobs of one tenant are handed out in their order. The tenants that have flows or plans waiting take turns, so
 * the first job of a tenant gets the next free slot, however many jobs of another tenant wait.
 */
export interface JobQueue {
  /**
   * Resolves once the job will survive a crash of this process. Changes nothing when the job waits or is handled already; a plan
   * that has ended can be added again. Throws `unavailable` within 2 s when the queue cannot be reached; the job may then have been added
   * or not. With `isNew` it is certain that there never was a job of this id, which is less work.
   */
  add(job: Job, options?: { isNew?: boolean }): Promise<void>
  /** Removes a job if no consumer has taken it. */
  remove(job: Job): Promise<void>
  /** Those of the ids for which no job waits or is handled. Throws `unavailable` within 2 s when the queue cannot be reached. */
  missing(kind: JobKind, ids: readonly string[]): Promise<string[]>
  close(): Promise<void>
}

export interface QueueMonitor {
  /** Throws `unavailable` within 2 s when the queue cannot be reached. */
  counts(kind: JobKind): Promise<JobCounts>
  /** The failed jobs that are still listed, newest first. Only the in-process queue has this method. */
  failures?(kind: JobKind): readonly FailedJob[]
}

/**
 * How a job ends when its handler has not simply succeeded. `failed`: the job is listed as failed with this reason, which holds ids
 * only and nothing that a tenant has written; at most 200 characters of it are kept. `again`: the job waits again, as if it had not
 * been handed out.
 */
export type JobEnd = { failed: string } | { again: true }

/** A job that ended as failed, at a time in ISO 8601. */
export type FailedJob = { id: string; tenant: TenantId; reason: string; at: string }

/** `giveWay` is aborted when the job should end with `again` as soon as it can without losing work (README.md). */
export type JobHandler = (job: Job, giveWay?: AbortSignal) => Promise<JobEnd | void>

export type ConsumeOptions = {
  /** The name of this process, by which `reclaim` finds its jobs. It has no colon, and is read for each job. */
  owner?(): string
  /** Jobs that are handled at the same time. */
  concurrency: number
  /** How many of them are the share of one tenant (README.md). By default tenants have no shares. */
  perTenant?: number
  /** Whether this process has the memory for an extra slot; by default it always has. */
  mayGrow?(): boolean
  /** Called instead of the handler for a job whose process died twice. It is called again in another process if this one dies, too. */
  onGivenUp: JobHandler
}

/** Takes jobs of one kind. */
export interface JobConsumer {
  /** Takes no further job. Resolves when the running handlers have ended. */
  drain(): Promise<void>
  /** Takes no further job, and does not wait for the handlers: their jobs are then like those of a dead process. */
  close(): Promise<void>
  /** The owners of the jobs that are handled now, in all processes. */
  owners(): Promise<string[]>
  /** Hands out the jobs of a dead owner again at once, instead of some seconds later. */
  reclaim(owner: string): Promise<void>
}

/**
 * Starts to take jobs. A job whose process died is given to another consumer, at most once; it may thus be handled twice, also at
 * the same time when its process was only suspended. The handler therefore claims its work in the store before it acts. A job is over
 * when its handler has ended, with or without an error.
 */
export type Consume = (kind: JobKind, handler: JobHandler, options: ConsumeOptions) => Promise<JobConsumer>

/**
 * When a schedule starts its work: every `every_secs` seconds, counted from 1970, or by a cron pattern in a time zone. With `least_secs` only
 * the first tick counts in each such time, which is also counted from 1970.
 */
export type Timing = { every_secs: number } | { cron: string; timezone: string; least_secs?: number }

/**
 * Fires schedules. Each tick is handed to the consumers of kind `schedule` as a job whose id `readTick` reads; the id is the same in
 * every process that may fire the tick, so that its work can be stored only once. Of the ticks that pass while no consumer runs, at
 * most one is fired later; an overloaded consumer leaves ticks out. A name has the form of D2.11.
 */
export interface Schedules {
  /** Creates or replaces a schedule. Changes nothing when it is the same. Throws `unavailable` when the queue cannot be reached. */
  put(tenant: TenantId, name: string, timing: Timing): Promise<void>
  remove(tenant: TenantId, name: string): Promise<void>
  close(): Promise<void>
}

/** `addedAt` is in milliseconds since 1970. */
export type StoredJob = { job: Job; addedAt: number }

/** Keeps the jobs of a queue that lives in one process. Every method throws `unavailable` when the store does not answer. */
export interface JobStore {
  insert(job: Job): Promise<void>
  /** Counts a handing out of the job. Returns how often it was handed out, including this time; `undefined` when it was deleted. */
  countStart(job: Job): Promise<number | undefined>
  /** Forgets how often the job was handed out. */
  resetStarts(job: Job): Promise<void>
  delete(job: Job): Promise<void>
  /** All jobs of a kind, oldest first. */
  list(kind: JobKind): Promise<StoredJob[]>
}

const MAX_CHARS = 200

/** The reason that is listed for a job whose handler threw. The error itself may contain anything, so it goes only to the log. */
export const HANDLER_FAILED = 'the job failed: see the log'

/** A reason in the form in which it is listed: one line of at most 200 characters. */
export const failedReason = (reason: string): string => reason.replaceAll(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_CHARS)

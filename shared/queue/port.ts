import type { TenantId } from '../tenant.ts'

/** The kinds of queued work. Each has a queue of its own. */
export type JobKind = 'flow'

/** A job holds ids only: everything else is in the store before the job is added. `id` is unique and has no colon. */
export type Job = { kind: JobKind; tenant: TenantId; id: string }

/** Adds work to the queue. */
export interface JobQueue {
  /**
   * Resolves once the job will survive a crash of this process. Throws `unavailable` within 2 s when the queue cannot be reached; the
   * job may then have been added or not.
   */
  add(job: Job): Promise<void>
  /** Removes a job that no consumer has taken. */
  remove(job: Job): Promise<void>
  close(): Promise<void>
}

export type JobHandler = (job: Job) => Promise<void>

export type ConsumeOptions = {
  /** Jobs that are handled at the same time. */
  concurrency: number
  /** Called instead of the handler for a job whose process died twice. It is called again elsewhere when this process dies, too. */
  onGivenUp: JobHandler
}

/** Takes jobs of one kind. */
export interface JobConsumer {
  /** Takes no further job. Resolves when the handlers under way have ended. */
  drain(): Promise<void>
  /** Takes no further job, and does not wait for the handlers: their jobs are as those of a process that died. */
  close(): Promise<void>
}

/**
 * Starts to take jobs. A job whose process died is given to another consumer, at most once; it may thus be handled twice, also at
 * the same time when its process was only suspended. The handler therefore claims its work in the store before it acts. A job is over
 * when its handler has ended, with or without an error.
 */
export type Consume = (kind: JobKind, handler: JobHandler, options: ConsumeOptions) => Promise<JobConsumer>

/** Keeps the jobs of a queue that lives in one process. Every method throws `unavailable` when the store does not answer. */
export interface JobStore {
  insert(job: Job): Promise<void>
  /** Counts a handing out of the job. Returns how often it was handed out, this time included; `undefined` when it was deleted. */
  countStart(job: Job): Promise<number | undefined>
  delete(job: Job): Promise<void>
  /** All jobs of a kind, oldest first. */
  list(kind: JobKind): Promise<Job[]>
}

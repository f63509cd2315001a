import type { TenantId } from '../../kernel/tenant.ts'
import type { Inbox } from '../commands/inbox.ts'
import type { SessionKey } from '../owners/owners.ts'
import type { TransferableSession } from './handoff.ts'

export type OwnedSession = TransferableSession & {
  /** The runs that have not begun. */
  readonly waiting: readonly { run: { id: string } }[]
  /** Begins no further run. Resolves when the one that was begun has ended. */
  hold(): Promise<void>
}

/** The worker that the relay connects to the cluster. */
export type ClusterWorker<S extends OwnedSession> = {
  inbox: Inbox
  liveRuns(): number
  isDraining(): boolean
  /** Refuses new work. Runs that have not ended after `graceMs` end with `worker_draining`. Resolves when all have ended. */
  drain(graceMs: number): Promise<void>
  /**
   * Prepares for another worker to take the sessions over: a session begins no further message. While one is being answered, the
   * session takes more messages, which move on with it.
   */
  holdQueues(): void
  /** Resolves when no run is known any more, of those that have ended either. */
  runsForgotten(): Promise<void>
  knowsRun(tenant: TenantId, runId: string): boolean
  sessions(): Iterable<S>
  /** The session of this id in memory. */
  find(session: SessionKey): S | undefined
  /** Takes over a session of another worker, with its conversation and its queue. It begins no message before `keep`. */
  adopt(state: S['state']): S
  /** Lets a session begin its messages: it has come to stay, or no other worker takes it. */
  keep(session: S): void
  /** Forgets a session that another worker owns now, and the messages in its queue. */
  release(session: S): void
  /** Ends all runs with `worker_lost` and forgets all sessions: this worker owns none of them any more. */
  abortAll(): void
}

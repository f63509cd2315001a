import type { TenantId } from '../../../kernel/tenant.ts'
import type { Inbox } from '../../commands/inbox.ts'
import type { SessionKey } from '../../owners/owners.ts'
import type { TransferableSession } from './handoff.ts'

export type OwnedSession = TransferableSession & {
  /** The runs that have not begun. */
  readonly waiting: readonly { run: { id: string } }[]
  /**
   * Begins no further run. Resolves when the current run has ended, or can be left to a worker that opens the session from the store;
   * `isBusy` is then still true.
   */
  rest(): Promise<void>
  /** Makes `rest` stop waiting for a run that can be left. */
  hasten(): void
  readonly isBusy: boolean
}

/** The worker that the relay connects to the cluster. */
export type ClusterWorker<S extends OwnedSession> = {
  inbox: Inbox
  liveRuns(): number
  isDraining(): boolean
  /**
   * Refuses new work. After `graceMs`, the remaining stored runs are left to the next process, and the others end with `worker_draining`.
   * Resolves when no run is left here.
   */
  drain(graceMs: number): Promise<void>
  /**
   * Prepares the sessions for another worker: a session begins no further message. While one is being answered, the session
   * accepts more messages, which move with it.
   */
  holdQueues(): void
  /** Resolves when no client needs this worker for an ended run any more, or `signal` is aborted. */
  runsServed(signal: AbortSignal): Promise<void>
  knowsRun(tenant: TenantId, runId: string): boolean
  sessions(): Iterable<S>
  /** The internal sessions of stored one-shot runs. They have no claims. */
  oneShots(): Iterable<S>
  /** The session of this id in memory. */
  find(session: SessionKey): S | undefined
  /** Takes over a session of another worker, with its conversation and its queue. It begins no message before `keep`. */
  adopt(state: S['state']): S
  /** Lets a session begin its messages, because it stays here. */
  keep(session: S): void
  /** Forgets a session that another worker owns now, and the messages in its queue. */
  release(session: S): void
  /** Stores that this worker leaves the runs of the session. Resolves with `false` when it could not be stored, or another worker has them. */
  drainRuns(session: S): Promise<boolean>
  /** Forgets a session whose runs another process continues, and does nothing more for them. */
  leave(session: S): void
  /** Ends all runs with `worker_lost` and forgets all sessions: this worker owns none of them any more. */
  abortAll(): void
}

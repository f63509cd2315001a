import type { TenantId } from '../../../kernel/tenant.ts'
import type { Inbox } from '../../commands/inbox.ts'
import type { SessionKey } from '../../owners/owners.ts'
import type { TransferableSession } from './handoff.ts'

export type OwnedSession = TransferableSession & {
  /** The runs that have not begun. */
  readonly waiting: readonly { run: { id: string } }[]
  /**
   * Begins no further run. Resolves when the one that was begun has ended, or can be left to a worker that opens the session from the store:
   * then `isBusy` is still true.
   */
  rest(): Promise<void>
  /** `rest` waits no longer for a run that can be left. */
  hasten(): void
  readonly isBusy: boolean
}

/** The worker that the relay connects to the cluster. */
export type ClusterWorker<S extends OwnedSession> = {
  inbox: Inbox
  liveRuns(): number
  isDraining(): boolean
  /**
   * Refuses new work. Runs that have not ended after `graceMs` are left to the next process where they are stored, and end with `worker_draining`
   * otherwise. Resolves when none is here any more.
   */
  drain(graceMs: number): Promise<void>
  /**
   * Prepares for another worker to take the sessions over: a session begins no further message. While one is being answered, the
   * session takes more messages, which move on with it.
   */
  holdQueues(): void
  /** Resolves when nobody needs this worker for a run that has ended, or `signal` is aborted. */
  runsServed(signal: AbortSignal): Promise<void>
  knowsRun(tenant: TenantId, runId: string): boolean
  sessions(): Iterable<S>
  /** The sessions that one-shot runs have for themselves, where they are stored. Nobody claims them. */
  oneShots(): Iterable<S>
  /** The session of this id in memory. */
  find(session: SessionKey): S | undefined
  /** Takes over a session of another worker, with its conversation and its queue. It begins no message before `keep`. */
  adopt(state: S['state']): S
  /** Lets a session begin its messages: it has come to stay, or no other worker takes it. */
  keep(session: S): void
  /** Forgets a session that another worker owns now, and the messages in its queue. */
  release(session: S): void
  /** Stores that this worker leaves the runs of the session. Resolves with `false` when it could not be stored, or another worker has them. */
  drainRuns(session: S): Promise<boolean>
  /** Forgets a session whose runs another worker goes on with, or the next process, and has no effect for them any more. */
  leave(session: S): void
  /** Ends all runs with `worker_lost` and forgets all sessions: this worker owns none of them any more. */
  abortAll(): void
}

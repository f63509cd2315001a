import type { TenantId } from '../../kernel/tenant.ts'
import type { Broker } from '../commands/broker.ts'
import type { RunSummary } from '../commands/runs.ts'
import type { FrameStream } from '../journal/frame-stream.ts'

/** The operations of a client on a run, wherever the run is. */
export type RunAccess = Pick<Broker, 'getRun' | 'followRun' | 'cancelRun'>

/** `isOfSession`: it is known to be the run of a session's message. */
export type Run = { tenant: TenantId; runId: string; isOfSession?: boolean }

/** A run that the worker or executor of this epoch has. */
export type RunPlace = Run & { epoch: number }

/** Calls workers and executors. Throws `not_found` for a run that the process does not know, and `unavailable` when it does not answer. */
export interface RunProcesses {
  isAlive(epoch: number): Promise<boolean>
  followRun(place: RunPlace, after: number): Promise<FrameStream>
  getRun(place: RunPlace): Promise<RunSummary>
  cancelRun(place: RunPlace): Promise<void>
}

/**
 * Where a run is, as its source says. An ended run is at the process that ran it. Without an epoch no process has begun it, and `code` gives
 * readers the reason (`worker_lost` if left out).
 */
export type SourceState =
  | { state: 'waiting'; started_at: string; deadline_at?: string }
  /** `mayMove`: another process starts it again when this one is dead (D34.2). */
  | { state: 'at'; epoch: number; mayMove?: { started_at: string } }
  | { state: 'ended'; epoch: number | null; code?: 'cancelled' | 'worker_lost' }

/**
 * Where a run is, seen from outside.
 *
 * | State   | Event                                                              | Next state |
 * |---------|--------------------------------------------------------------------|------------|
 * | waiting | an executor takes it from the queue                                | at         |
 * | waiting | it is cancelled, or no executor has taken it in time               | ended      |
 * | at      | it goes to another worker with its session, or its process died and another one goes on with it | moving |
 * | at      | its end                                                            | ended      |
 * | moving  | the other process has it                                           | at         |
 * | moving  | it is cancelled, or no other process has taken it                  | ended      |
 * | any     | its process died and none goes on with it, or has forgotten it     | unknown    |
 */
export type RunState =
  | SourceState
  /** `epoch` is the process that no longer has it. */
  | { state: 'moving'; epoch: number; started_at: string }
  | { state: 'unknown' }

export const UNKNOWN: RunState = { state: 'unknown' }

/** Knows where the runs of one kind are. */
export interface RunPlaces {
  /** `isNew`: for a reader that begins with the first event and waits for the start notice. */
  find(run: Run, isNew?: boolean): Promise<RunState>
  /** Finds the place of a run that the process of epoch `from` no longer has. Throws `unavailable` when that is not known within the time. */
  findNext(run: Run, from: number | null, withinMs?: number): Promise<RunState>
  /** Ends a run that is waiting or moving. Returns `false` when it no longer is, or cannot be ended there. */
  cancelWaiting?(run: Run, lost: number | undefined): Promise<boolean>
  readonly habits: RunHabits
}

/** The behaviour of one kind of runs. */
export type RunHabits = {
  /** Whether a run's process may be named before it knows the run. */
  isNamedEarly?: boolean
  /** Whether a run may still move when its stream has begun. */
  mayMoveBegun: boolean
  /** How long a broken stream may take to continue elsewhere, and how often that is tried. */
  movesWithinMs: number
  retryMs: number
  /**
   * How long a cancel is tried again while the process of the run does not answer, because another one may continue the
   * run. Left out: it is tried once (D37.3).
   */
  cancelsWithinMs?: number
  /** Ends all searches when it is aborted. */
  stopped?: AbortSignal | undefined
}

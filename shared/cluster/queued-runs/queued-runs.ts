import { setTimeout as sleep } from 'node:timers/promises'
import { retryUntil } from '../../kernel/async/retry.ts'
import { AppError, conflict, hasKind, notFound } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Broker } from '../commands/broker.ts'
import type { RunSummary } from '../commands/runs.ts'
import type { FrameStream } from '../journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../journal/frames.ts'
import type { ExecutorCalls, RunPlace } from './executor-calls.ts'
import { MovableStream } from './movable-stream.ts'
import type { QueuedRunSource, QueuedRunState } from './run-source.ts'
import { WaitingRuns, type WaitingRunsDeps } from './waiting-runs.ts'

/** The operations of a client on a run, wherever the run is. */
export type RunAccess = Pick<Broker, 'getRun' | 'followRun' | 'cancelRun'>

export type QueuedRunsDeps = WaitingRunsDeps & {
  source: QueuedRunSource
  executors: ExecutorCalls
  /** How long a stream waits for a run that begins anew; 15 s by default. */
  movesWithinMs?: number
}

/** An executor is named in the store before it knows the run: it is asked this often. */
const STARTING_TRIES = 10
const STARTING_STEP_MS = 100
/** How often a stream looks where its run is that begins anew, and how long it waits for that. */
const MOVE_LOOK_MS = 200
const MOVES_WITHIN_MS = 15_000

type Broken = { tenant: TenantId; runId: string; followed: number[] }

/**
 * Finds the runs that were queued for an executor, whose ids do not say where they are: in the store, and while somebody waits for
 * one to begin, by the start notices of executors (`shared/cluster/README.md` "Queued runs").
 */
export class QueuedRuns implements RunAccess {
  readonly #source: QueuedRunSource
  readonly #executors: ExecutorCalls
  readonly #waiting: WaitingRuns
  readonly #movesWithinMs: number

  constructor(deps: QueuedRunsDeps) {
    this.#source = deps.source
    this.#executors = deps.executors
    this.#waiting = new WaitingRuns(deps)
    this.#movesWithinMs = deps.movesWithinMs ?? MOVES_WITHIN_MS
  }

  /** The number of streams whose run has not begun. */
  get waitingCount(): number {
    return this.#waiting.count
  }

  async getRun(tenant: TenantId, runId: string): Promise<RunSummary> {
    return this.#act(tenant, runId, async (found) => {
      const waiting = { run_id: runId, ended_at: null, event_count: 0 }
      if (found.state === 'queued') return { ...waiting, status: 'waiting', started_at: found.started_at }
      const moving = await this.#movingFrom(found)
      if (moving) return { ...waiting, status: 'running', started_at: moving.started_at }
      return this.#atExecutor(tenant, runId, found, (place) => this.#executors.getRun(place))
    })
  }

  async followRun(tenant: TenantId, runId: string, after: number): Promise<FrameStream> {
    // What was just queued is not read from the store: if it has begun, a start notice says so.
    const created = after === 0 ? this.#source.takeCreated?.(tenant, runId) : undefined
    const found = created ?? (await this.#find(tenant, runId))
    const followed: number[] = []
    const elsewhere = (seq: number) => this.#followElsewhere({ tenant, runId, followed }, seq)
    if (found.state === 'queued') return new MovableStream(this.#waiting.wait(tenant, runId), elsewhere, true) // It has no event yet, so `after` is 0.
    const isMoving = (await this.#movingFrom(found)) !== undefined // Like a stream that has broken off there.
    const stream = isMoving
      ? endedBy('worker_lost', after)
      : await this.#atExecutor(tenant, runId, found, (place) => this.#executors.followRun(place, after))
    if (found.executor !== null) followed.push(found.executor)
    return new MovableStream(stream, elsewhere, true)
  }

  /**
   * Waits until another executor has begun a run anew whose own is dead; `undefined` when none does. Throws when that takes too long. `followed` are
   * those whose streams broke off.
   */
  async #followElsewhere({ tenant, runId, followed }: Broken, after: number): Promise<FrameStream | undefined> {
    const until = performance.now() + this.#movesWithinMs
    while (performance.now() < until) {
      const found = await this.#source.find(tenant, runId).catch(() => 'away' as const)
      if (found !== 'away') {
        if (found?.state === 'ended' && found.code === 'cancelled') return endedBy('cancelled', after)
        if (found?.state !== 'running') return undefined
        const { executor: epoch, mayMove } = found
        if (await this.#executors.isAlive(epoch).catch(() => false)) {
          if (followed.includes(epoch)) return undefined
          const frames = await this.#executors.followRun({ epoch, tenant, runId }, after).catch(() => undefined)
          if (frames) followed.push(epoch)
          if (frames) return frames
        } else if (!mayMove) return undefined
      }
      await sleep(MOVE_LOOK_MS)
    }
    throw new AppError('unavailable', `the run ${runId} waits for another executor: come back to it`)
  }

  async cancelRun(tenant: TenantId, runId: string): Promise<void> {
    await this.#act(tenant, runId, async (first) => {
      if (await this.#cancelWaiting(tenant, runId, first)) return this.#waiting.fail('cancelled', runId)
      const found = first.state === 'ended' ? first : await this.#find(tenant, runId)
      if (found.state === 'queued') throw conflict(`the run ${runId} is still queued: cancel it when it has begun`)
      await this.#atExecutor(tenant, runId, found, (place) => this.#executors.cancelRun(place))
    })
  }

  async #cancelWaiting(tenant: TenantId, runId: string, found: QueuedRunState): Promise<boolean> {
    if (found.state === 'queued') return (await this.#source.cancelWaiting?.(tenant, runId)) ?? false
    const moving = await this.#movingFrom(found)
    return moving ? ((await this.#source.cancelWaiting?.(tenant, runId, moving.executor)) ?? false) : false
  }

  /** The dead executor of a run that is to begin anew at another one, and the start of the run; `undefined` for every other run. */
  async #movingFrom(found: QueuedRunState): Promise<{ executor: number; started_at: string } | undefined> {
    if (found.state !== 'running' || !found.mayMove) return undefined
    const { executor, mayMove } = found
    return (await this.#executors.isAlive(executor)) ? undefined : { executor, ...mayMove }
  }

  /** Acts on the run as it is in the store, and once more when its executor died meanwhile and another one begins it anew. */
  async #act<T>(tenant: TenantId, runId: string, act: (found: QueuedRunState) => Promise<T>): Promise<T> {
    try {
      return await act(await this.#find(tenant, runId))
    } catch (cause) {
      if (!hasKind(cause, 'not_found')) throw cause
      const found = await this.#find(tenant, runId)
      if (found.state !== 'running' || !found.mayMove) throw cause
      return act(found)
    }
  }

  /** Handles a start notice: an executor has begun this run. */
  onStarted(runId: string, epoch: number): void {
    this.#waiting.onStarted(runId, epoch)
  }

  /** Ends the streams whose run has not begun. */
  fail(code: ReaderFailure): void {
    this.#waiting.fail(code)
  }

  /** Resolves when no stream waits any more, or after `withinMs`. */
  async waited(withinMs: number): Promise<void> {
    await this.#waiting.ended(withinMs)
  }

  async #find(tenant: TenantId, runId: string): Promise<QueuedRunState> {
    const found = await this.#source.find(tenant, runId)
    if (!found) throw noRun(runId)
    return found
  }

  async #atExecutor<T>(
    tenant: TenantId,
    runId: string,
    { state, executor: epoch }: Exclude<QueuedRunState, { state: 'queued' }>,
    call: (place: RunPlace) => Promise<T>,
  ): Promise<T> {
    if (epoch === null || !(await this.#executors.isAlive(epoch))) throw noRun(runId)
    let tries = 0
    const mayPass = (cause: unknown) => hasKind(cause, 'not_found') && state !== 'ended' && ++tries < STARTING_TRIES
    return retryUntil(() => call({ epoch, tenant, runId }), { pauses: STARTING_STEP_MS, mayPass })
  }
}

async function* endedBy(code: ReaderFailure, after: number): FrameStream {
  yield failureFrame(after, code)
}

export const noRun = (runId: string): AppError =>
  notFound(`no run ${runId}: it never existed, or it ended too long ago`)

const refuse = async (_tenant: TenantId, runId: string): Promise<never> => {
  throw noRun(runId)
}

/** The access of a server that has no queue. */
export const NO_QUEUED_RUNS: RunAccess = { getRun: refuse, followRun: refuse, cancelRun: refuse }

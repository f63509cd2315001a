import { retryUntil } from '../../kernel/async/retry.ts'
import { AppError, conflict, hasKind, notFound } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { RunSummary } from '../commands/runs.ts'
import type { FrameStream } from '../journal/frame-stream.ts'
import { failureFrame } from '../journal/frames.ts'
import { isUnanswered } from '../owners/session-router.ts'
import { type BrokenOff, type Elsewhere, endedBy, FollowedRun, type Following } from './followed-run.ts'
import type { Run, RunAccess, RunPlace, RunPlaces, RunProcesses, RunState } from './port.ts'
import { WaitingRuns } from './waiting-runs.ts'

export type RunFinderDeps = {
  places: RunPlaces
  processes: RunProcesses
  /** How often awaited runs are looked up. */
  lookEveryMs?: number
}

type Looking = { isNew?: boolean; until?: number }

/** How often a process is asked that may be named before it knows the run. */
const STARTING_TRIES = 10
const STARTING_STEP_MS = 100

/** Finds runs, calls the process that has a run, and follows the run when it moves. */
export class RunFinder implements RunAccess {
  readonly #places: RunPlaces
  readonly #processes: RunProcesses
  /** The runs whose streams were opened before a process has them. */
  readonly waiting: WaitingRuns

  constructor(deps: RunFinderDeps) {
    this.#places = deps.places
    this.#processes = deps.processes
    this.waiting = new WaitingRuns(deps)
  }

  getRun(tenant: TenantId, runId: string): Promise<RunSummary> {
    const run = { tenant, runId }
    return this.#act(run, async (at) => {
      if (at.state !== 'waiting' && at.state !== 'moving')
        return this.#ask(run, at, (place) => this.#processes.getRun(place))
      const { state, started_at } = at
      const known = { run_id: runId, started_at, ended_at: null, event_count: 0 }
      if (state === 'moving') return { ...known, status: 'running' }
      return { ...known, status: 'waiting', ...(at.deadline_at !== undefined && { deadline_at: at.deadline_at }) }
    })
  }

  async followRun(tenant: TenantId, runId: string, after: number): Promise<FrameStream> {
    const run = { tenant, runId }
    if (after === 0 && this.waiting.isExpected(run)) return this.waiting.wait(run, this.#following(run, null))
    const follow = async (at: RunState): Promise<FrameStream> => {
      if (at.state === 'waiting') return this.waiting.wait(run, this.#following(run, null)) // It has no event yet, so `after` is 0.
      if (at.state === 'moving') return this.followed({ ...run, epoch: at.epoch }, endedBy('worker_lost', after))
      return this.#ask(run, at, async (place) => this.followed(place, await this.#processes.followRun(place, after)))
    }
    return this.#act(run, follow, { isNew: after === 0 })
  }

  /** The same frames; they continue from another process when the run moves. */
  followed({ epoch, ...run }: RunPlace, frames: FrameStream): FrameStream {
    return new FollowedRun(frames, this.#following(run, epoch))
  }

  cancelRun(tenant: TenantId, runId: string): Promise<void> {
    const run = { tenant, runId }
    return this.#untilAnswered((looking) => this.#act(run, (at) => this.#cancel(run, at), looking))
  }

  /** Calls the process that has the run. The call may be made twice. */
  callRun<T>(tenant: TenantId, runId: string, call: (place: RunPlace) => Promise<T>): Promise<T> {
    const run = { tenant, runId }
    return this.#untilAnswered((looking) => this.#act(run, (at) => this.#ask(run, at, call), looking))
  }

  /**
   * Repeats the call while the process does not answer: it may have died, and once that is known, another process
   * continues the run and can answer (D37.3).
   */
  #untilAnswered<T>(act: (looking: Looking) => Promise<T>): Promise<T> {
    const { cancelsWithinMs, retryMs: pauses, stopped } = this.#places.habits
    if (cancelsWithinMs === undefined) return act({})
    const until = performance.now() + cancelsWithinMs
    const retries = { pauses, until, mayPass: isUnanswered, ref: false, ...(stopped && { signal: stopped }) }
    return retryUntil(() => act({ until }), retries)
  }

  async #cancel(run: Run, at: RunState): Promise<void> {
    let now = at
    if (at.state === 'waiting' || at.state === 'moving') {
      const lost = at.state === 'moving' ? at.epoch : undefined
      if (await this.#places.cancelWaiting?.(run, lost)) return this.waiting.fail('cancelled', run.runId)
      now = await this.#places.find(run)
      if (now.state === 'waiting') throw conflict(`the run ${run.runId} is still queued: cancel it when it has begun`)
    }
    await this.#ask(run, now, (place) => this.#processes.cancelRun(place))
  }

  /**
   * Acts on the run at its process, and at the next one when that process no longer has it; the next one may die meanwhile, too. A caller with its
   * own deadline waits no longer than that for the run to be found.
   */
  async #act<T>(run: Run, act: (at: RunState) => Promise<T>, { isNew, until }: Looking = {}): Promise<T> {
    let at = await this.#places.find(run, isNew)
    for (;;) {
      try {
        return await act(at)
      } catch (cause) {
        if (!hasKind(cause, 'not_found')) throw cause
        const withinMs = until === undefined ? undefined : until - performance.now()
        const next = await this.#places.findNext(run, 'epoch' in at ? at.epoch : null, withinMs)
        if (next.state !== 'at' && (next.state !== 'moving' || at.state === 'moving')) throw cause
        at = next
      }
    }
  }

  async #ask<T>(run: Run, at: RunState, call: (place: RunPlace) => Promise<T>): Promise<T> {
    const epoch = at.state === 'at' || at.state === 'ended' ? at.epoch : null
    if (epoch === null || !(await this.#processes.isAlive(epoch))) throw noRun(run.runId)
    let tries = at.state === 'at' && this.#places.habits.isNamedEarly ? STARTING_TRIES : 1
    const mayPass = (cause: unknown) => hasKind(cause, 'not_found') && --tries > 0
    return retryUntil(() => call({ ...run, epoch }), { pauses: STARTING_STEP_MS, mayPass })
  }

  #following(run: Run, epoch: number | null): Following {
    const { mayMoveBegun } = this.#places.habits
    const followNext = this.#followNext(run, epoch)
    return {
      mayGoOn: (end) => end !== undefined && BREAKS.has(end.failure) && (mayMoveBegun || end.lastSeq === 0),
      async followElsewhere({ failure, after, isInsideFrame }: BrokenOff): Promise<Elsewhere> {
        const comeBack = { end: failureFrame(after, 'relay_unavailable') }
        // Another process cannot send the rest of a large frame: the client reconnects for it, and the run may continue meanwhile.
        if (isInsideFrame && mayMoveBegun) return failure?.failure === 'worker_lost' ? comeBack : { end: failure }
        const followed = followNext(after).then((stream) => (stream ? { stream } : { end: failure }))
        return followed.catch(() => comeBack)
      },
    }
  }

  /** Follows a run to its next process, each time its stream breaks off; `undefined` when no other process has it. */
  #followNext(run: Run, first: number | null): (after: number) => Promise<FrameStream | undefined> {
    const { movesWithinMs, retryMs: pauses, isNamedEarly, stopped } = this.#places.habits
    let from = first
    return (after) => {
      const until = performance.now() + movesWithinMs
      const follow = async (): Promise<FrameStream | undefined> => {
        const next = await this.#places.findNext(run, from, until - performance.now())
        if (next.state === 'moving') throw new AppError('unavailable', `the run ${run.runId} waits for another process`)
        if (next.state === 'ended' && next.code === 'cancelled') return endedBy('cancelled', after)
        if (next.state !== 'at') return undefined
        const { epoch } = next
        try {
          const frames = await this.#processes.followRun({ ...run, epoch }, after)
          from = epoch
          return frames
        } catch (cause) {
          if (!isNamedEarly && hasKind(cause, 'not_found')) from = epoch
          throw cause
        }
      }
      return retryUntil(follow, { pauses, until, ref: false, ...(stopped && { signal: stopped }) })
    }
  }
}

/** Failures of a stream after which the run may continue elsewhere. */
const BREAKS: ReadonlySet<string | undefined> = new Set(['stream_gap', 'worker_lost'])

export const noRun = (runId: string): AppError =>
  notFound(`no run ${runId}: it never existed, or it ended too long ago`)

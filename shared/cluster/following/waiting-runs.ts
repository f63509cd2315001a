import { LRUCache } from 'lru-cache'
import { within } from '../../kernel/async/deadline.ts'
import { hasKind } from '../../kernel/errors.ts'
import type { FrameStream } from '../journal/frame-stream.ts'
import type { ReaderFailure } from '../journal/frames.ts'
import { endedBy, FollowedRun, type Following } from './followed-run.ts'
import type { Run, RunPlaces, RunProcesses } from './port.ts'

export type WaitingRunsDeps = {
  places: Pick<RunPlaces, 'find'>
  processes: Pick<RunProcesses, 'followRun'>
  /** The time before a run is first looked up, and between two look-ups. */
  lookEveryMs?: number
}

type WaitingRun = {
  run: Run
  streams: Set<FollowedRun>
  /** Its streams are being opened at its executor. */
  isBeginning: boolean
  /** When it is looked up, on the clock of `performance.now()`. */
  lookAt: number
  /** How often the executor that runs it did not know it. */
  misses: number
}

/** A run that is about to be queued. `begin`: its first reader waits for it. */
type ExpectedRun = Pick<Run, 'tenant'> & { begin?: (frames: FrameStream) => void }

/** Called when the executor of this epoch begins to send a run; `open` opens its stream. */
export type OnBegun = (epoch: number, open: () => FrameStream) => void

const LOOK_EVERY_MS = 500
/** An executor that does not know its run this often has lost it. */
const MAX_MISSES = 4
/** The latest starts are remembered for readers whose look-up was running when the start notice came. */
const MAX_STARTS = 1_000
/** A run that is expected is followed at once. Later it is looked up, because it may have ended. */
const EXPECTED_MS = 1_000

/**
 * The queued runs that readers wait for. Their first frames, or a start notice, show that a run has begun; because both may be lost, the runs are
 * also looked up.
 */
export class WaitingRuns {
  readonly #deps: WaitingRunsDeps
  /** In the order in which they are looked up. */
  readonly #runs = new Map<string, WaitingRun>()
  readonly #lookEveryMs: number
  /** Epochs of executors by the id of the run. */
  readonly #starts = new Map<string, number>()
  readonly #expected = new LRUCache<string, ExpectedRun>({ max: MAX_STARTS, ttl: EXPECTED_MS })
  #timer: NodeJS.Timeout | undefined
  #isLooking = false
  #onEmpty = () => {}

  constructor(deps: WaitingRunsDeps) {
    this.#deps = deps
    this.#lookEveryMs = deps.lookEveryMs ?? LOOK_EVERY_MS
  }

  /** The number of streams. */
  get count(): number {
    return [...this.#runs.values()].reduce((count, { streams }) => count + streams.size, 0)
  }

  /**
   * Expects the frames of a run that is about to be queued; its job names this stream. Until the run is followed,
   * frames only count as a start notice.
   */
  expect({ tenant, runId }: Run): OnBegun {
    const expected: ExpectedRun = { tenant }
    this.#expected.set(runId, expected)
    return (epoch, open) => {
      expected.begin?.(open())
      this.onStarted(runId, epoch)
    }
  }

  /** Whether this process has queued the run a moment ago, and nobody has followed it here. */
  isExpected({ tenant, runId }: Run): boolean {
    return this.#expected.get(runId)?.tenant === tenant
  }

  /** Returns the stream of a run that was found waiting, or is expected. */
  wait(run: Run, following: Following): FollowedRun {
    const { runId: id } = run
    const fresh = { isBeginning: false, lookAt: this.#nextLook(), misses: 0 }
    const waiting = this.#runs.get(id) ?? { run, streams: new Set(), ...fresh }
    const stream = new FollowedRun('waiting', { ...following, onLeft: () => this.#remove(waiting, stream) })
    waiting.streams.add(stream)
    this.#runs.set(id, waiting)
    this.#lookLater()
    this.#awaitExpected(waiting, stream)
    const epoch = this.#starts.get(id)
    if (epoch !== undefined) void this.#begin(waiting, epoch)
    return stream
  }

  /** Handles a start notice: an executor has begun this run. */
  onStarted(id: string, epoch: number): void {
    this.#starts.set(id, epoch)
    if (this.#starts.size > MAX_STARTS) this.#starts.delete(this.#starts.keys().next().value ?? '')
    const waiting = this.#runs.get(id)
    if (waiting) void this.#begin(waiting, epoch)
  }

  /** Ends the streams of this run, or with `id` left out of all runs. */
  fail(code: ReaderFailure, id?: string): void {
    for (const each of this.#runs.values()) if (id === undefined || each.run.runId === id) this.#failRun(each, code)
  }

  /** Resolves when no stream waits any more, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#runs.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    await within(withinMs, promise)
  }

  /** Passes the expected frames to the stream. If it was opened in another way meanwhile, or its reader has left, the frames are left at once. */
  #awaitExpected(waiting: WaitingRun, stream: FollowedRun): void {
    const { runId } = waiting.run
    const expected = this.#expected.get(runId)
    this.#expected.delete(runId)
    if (!expected) return
    expected.begin = (frames) => {
      this.#remove(waiting, stream)
      stream.begin(frames)
    }
  }

  /** Opens the streams at the executor. Never rejects: if that fails, they wait for the next look-up. */
  async #begin(waiting: WaitingRun, epoch: number): Promise<void> {
    if (waiting.isBeginning) return
    waiting.isBeginning = true
    try {
      for (const stream of waiting.streams) {
        const frames = await this.#deps.processes.followRun({ ...waiting.run, epoch }, 0)
        this.#remove(waiting, stream)
        stream.begin(frames)
      }
    } catch (cause) {
      if (hasKind(cause, 'not_found') && ++waiting.misses >= MAX_MISSES) this.#failRun(waiting, 'worker_lost')
    } finally {
      waiting.isBeginning = false
    }
  }

  #nextLook(): number {
    return performance.now() + this.#lookEveryMs
  }

  #lookLater(leastMs = 0): void {
    const [first] = this.#runs.values()
    if (!first || this.#isLooking) return
    const ms = Math.max(leastMs, first.lookAt - performance.now())
    this.#timer ??= setTimeout(() => void this.#lookAtAll(), ms)
  }

  /** Looks up the runs that have waited long enough, one after the other, so that many waiting readers do not overload the store. */
  async #lookAtAll(): Promise<void> {
    this.#timer = undefined
    this.#isLooking = true
    let pauseMs = 0
    try {
      for (const [id, waiting] of this.#runs) {
        if (waiting.lookAt > performance.now()) break
        waiting.lookAt = this.#nextLook()
        this.#runs.delete(id)
        this.#runs.set(id, waiting)
        await this.#look(waiting)
      }
    } catch {
      pauseMs = this.#lookEveryMs // The store does not answer.
    }
    this.#isLooking = false
    this.#lookLater(pauseMs)
  }

  async #look(waiting: WaitingRun): Promise<void> {
    const now = await this.#deps.places.find(waiting.run)
    if (now.state === 'waiting') return
    if (now.state === 'moving' || now.state === 'unknown') return this.#failRun(waiting, 'worker_lost')
    if (now.epoch !== null) return void this.#begin(waiting, now.epoch)
    this.#failRun(waiting, (now.state === 'ended' && now.code) || 'worker_lost')
  }

  #failRun(waiting: WaitingRun, code: ReaderFailure): void {
    for (const stream of waiting.streams) {
      this.#remove(waiting, stream)
      stream.begin(endedBy(code, 0))
    }
  }

  #remove(waiting: WaitingRun, stream: FollowedRun): void {
    waiting.streams.delete(stream)
    if (waiting.streams.size > 0 || this.#runs.get(waiting.run.runId) !== waiting) return
    this.#runs.delete(waiting.run.runId)
    if (this.#runs.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#onEmpty()
  }
}

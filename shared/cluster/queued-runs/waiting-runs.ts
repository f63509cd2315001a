import { hasKind } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { FrameStream } from '../journal/frame-stream.ts'
import type { ReaderFailure } from '../journal/frames.ts'
import type { ExecutorCalls } from './executor-calls.ts'
import type { QueuedRunSource } from './run-source.ts'
import { WaitingStream } from './waiting-stream.ts'

export type WaitingRunsDeps = {
  source: Pick<QueuedRunSource, 'find'>
  executors: Pick<ExecutorCalls, 'isAlive' | 'followRun'>
  /** How often the runs are looked up. */
  lookEveryMs?: number
}

type WaitingRun = {
  id: string
  tenant: TenantId
  streams: Set<WaitingStream>
  /** Its streams are being opened at its executor. */
  isBeginning: boolean
  /** How often the executor that runs it did not know it. */
  misses: number
}

const LOOK_EVERY_MS = 500
/** An executor that does not know its run this often has lost it. */
const MAX_MISSES = 4
/** The latest starts are remembered, for a reader whose look-up was under way when the start notice came. */
const MAX_STARTS = 1_000

/** The queued runs that somebody waits for. A start notice says when one has begun; since it may be lost, they are also looked up. */
export class WaitingRuns {
  readonly #deps: WaitingRunsDeps
  readonly #runs = new Map<string, WaitingRun>()
  /** Epochs of executors by the id of the run. */
  readonly #starts = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #isLooking = false
  #onEmpty = () => {}

  constructor(deps: WaitingRunsDeps) {
    this.#deps = deps
  }

  /** The number of streams. */
  get count(): number {
    return [...this.#runs.values()].reduce((count, { streams }) => count + streams.size, 0)
  }

  /** Returns the stream of a run that was found queued. */
  wait(tenant: TenantId, id: string): FrameStream {
    const run = this.#runs.get(id) ?? { id, tenant, streams: new Set(), isBeginning: false, misses: 0 }
    const stream = new WaitingStream(() => this.#remove(run, stream))
    run.streams.add(stream)
    this.#runs.set(id, run)
    this.#lookLater()
    const epoch = this.#starts.get(id)
    if (epoch !== undefined) void this.#begin(run, epoch)
    return stream
  }

  onStarted(id: string, epoch: number): void {
    this.#starts.set(id, epoch)
    if (this.#starts.size > MAX_STARTS) this.#starts.delete(this.#starts.keys().next().value ?? '')
    const run = this.#runs.get(id)
    if (run) void this.#begin(run, epoch)
  }

  /** Ends the streams of this run, or with `id` left out of all runs. */
  fail(code: ReaderFailure, id?: string): void {
    for (const run of this.#runs.values()) if (id === undefined || run.id === id) this.#failRun(run, code)
  }

  /** Resolves when no stream waits any more, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#runs.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    const timer = setTimeout(resolve, withinMs)
    await promise
    clearTimeout(timer)
  }

  /** Opens the streams at the executor. Never rejects: those that cannot be opened wait for the next look-up. */
  async #begin(run: WaitingRun, epoch: number): Promise<void> {
    if (run.isBeginning) return
    run.isBeginning = true
    try {
      for (const stream of run.streams) {
        const frames = await this.#deps.executors.followRun({ epoch, tenant: run.tenant, runId: run.id }, 0)
        this.#remove(run, stream)
        stream.begin(frames)
      }
    } catch (cause) {
      if (hasKind(cause, 'not_found') && ++run.misses >= MAX_MISSES) this.#failRun(run, 'worker_lost')
    } finally {
      run.isBeginning = false
    }
  }

  #lookLater(): void {
    if (this.#isLooking) return
    this.#timer ??= setTimeout(() => void this.#lookAtAll(), this.#deps.lookEveryMs ?? LOOK_EVERY_MS)
  }

  /** Looks the runs up one after the other, so that many waiting readers are no burden for the store. */
  async #lookAtAll(): Promise<void> {
    this.#timer = undefined
    this.#isLooking = true
    try {
      for (const run of this.#runs.values()) await this.#look(run)
    } catch {
      // The store is away: all are looked up again.
    }
    this.#isLooking = false
    if (this.#runs.size > 0) this.#lookLater()
  }

  async #look(run: WaitingRun): Promise<void> {
    const found = await this.#deps.source.find(run.tenant, run.id)
    if (found?.state === 'queued') return
    if (found === undefined) return this.#failRun(run, 'worker_lost')
    if (found.executor === null) return this.#failRun(run, found.code ?? 'worker_lost')
    if (!(await this.#deps.executors.isAlive(found.executor))) return this.#failRun(run, 'worker_lost')
    void this.#begin(run, found.executor)
  }

  #failRun(run: WaitingRun, code: ReaderFailure): void {
    for (const stream of run.streams) {
      this.#remove(run, stream)
      stream.fail(code)
    }
  }

  #remove(run: WaitingRun, stream: WaitingStream): void {
    run.streams.delete(stream)
    if (run.streams.size > 0 || this.#runs.get(run.id) !== run) return
    this.#runs.delete(run.id)
    if (this.#runs.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#onEmpty()
  }
}

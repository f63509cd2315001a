import { FrameReader } from '../../cluster/journal/frame-reader.ts'
import { renderFrame } from '../../cluster/journal/frames.ts'
import type { FrameStream, Frames } from '../../cluster/port.ts'
import { toAppError } from '../../kernel/errors.ts'
import { eventsOf } from './events-of.ts'
import { renderEvents, renumbered, unreadFrames } from './frames.ts'
import { isEnded } from './plan-runs.ts'
import type { PlanRecord } from './port.ts'

export type WatchedPlanDeps = {
  /** Number of the last frame that the reader has. */
  after: number
  /** The frames of the plan's run after this number, from the executor that runs it or will run it. */
  follow(after: number): Promise<FrameStream>
  read(): Promise<PlanRecord | undefined>
  /** The longest silence of the stream before the record is read; 2 s by default. */
  silentMs?: number
  /** The wait before the plan is followed again; 500 ms by default. */
  retryMs?: number
}

const RETRY_MS = 500

/** Failures that end the work of one executor on the plan; the others end this reader's stream. */
const BREAKS: ReadonlySet<string> = new Set(['worker_lost', 'cancelled'])

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * The frames of a plan that has not ended, through as many executors as it takes, until `plan_ended`. When no executor sends the end,
 * it is taken from the stored record. A class, because `return` must end a wait that is under way.
 *
 * | State     | Event                                        | Next state                        |
 * |-----------|----------------------------------------------|-----------------------------------|
 * | searching | an executor has the plan's run, or the queue | following                         |
 * | searching | the record says that the plan has ended      | closed, after the rest of its events |
 * | following | the executor was lost or has stopped         | searching                         |
 * | following | `plan_ended`, or a failure of this reader    | closed                            |
 * | any       | the reader has left                          | closed                            |
 */
export class WatchedPlan implements AsyncIterableIterator<Frames> {
  readonly #deps: WatchedPlanDeps
  #source: FrameReader | undefined
  #seq: number
  #isClosed = false
  #wake: () => void = () => {}

  constructor(deps: WatchedPlanDeps) {
    this.#deps = deps
    this.#seq = deps.after
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    while (!this.#isClosed) {
      const frames = this.#source ? await this.#read(this.#source) : await this.#search()
      if (frames) return { done: false, value: frames }
    }
    return END
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    this.#isClosed = true
    this.#wake()
    await this.#leave()
    return END
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Follows the plan's run where it is now. Otherwise returns the rest of an ended plan, or waits. */
  async #search(): Promise<Frames | undefined> {
    try {
      this.#source = new FrameReader(await this.#deps.follow(this.#seq), this.#deps.silentMs)
      if (this.#isClosed) await this.#leave()
      return undefined
    } catch (cause) {
      const { kind } = toAppError(cause)
      if (kind !== 'not_found' && kind !== 'unavailable') throw cause
    }
    return (await this.#rest()) ?? this.#wait()
  }

  async #read(source: FrameReader): Promise<Frames | undefined> {
    const news = await source.next()
    if (news === 'silence') return this.#rest()
    if (news === undefined) return this.#lost()
    if (news.failure !== undefined && BREAKS.has(news.failure)) return this.#lost()
    if (news.failure !== undefined) return this.#close(renumbered(news, this.#seq))
    return this.#take(news)
  }

  async #take(news: Frames): Promise<Frames | undefined> {
    const { frames, end } = unreadFrames(news, this.#seq)
    if (frames) this.#seq = frames.lastSeq
    if (end === 'plan') this.#isClosed = true
    if (end !== undefined) await this.#leave()
    if (frames || end !== 'executor') return frames
    return (await this.#rest()) ?? this.#wait()
  }

  async #lost(): Promise<Frames | undefined> {
    await this.#leave()
    return (await this.#rest()) ?? this.#wait()
  }

  /** The rest of the events of a plan that has ended; `undefined` while it goes on, and while the store is away. */
  async #rest(): Promise<Frames | undefined> {
    const read = await this.#deps.read().then(
      (plan) => ({ plan }),
      () => undefined,
    )
    if (!read || (read.plan && !isEnded(read.plan))) return undefined
    await this.#leave()
    this.#isClosed = true
    const events = read.plan ? eventsOf(read.plan) : []
    const rest = renderEvents(events, this.#seq)
    const last = events.at(-1)
    if (rest || !last || this.#seq === this.#deps.after) return rest
    return this.#close(renderFrame(this.#seq, last)) // An executor that was lost has sent more events than the record tells of.
  }

  /** A terminal frame that no executor has sent repeats the last number (D4.2). */
  async #close(text: string): Promise<Frames> {
    this.#isClosed = true
    await this.#leave()
    return { text, lastSeq: this.#seq }
  }

  async #leave(): Promise<void> {
    const source = this.#source
    this.#source = undefined
    await source?.return()
  }

  /** Resolves after a while, or when the reader leaves. */
  async #wait(): Promise<undefined> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, this.#deps.retryMs ?? RETRY_MS)
    if (!this.#isClosed) await promise
    clearTimeout(timer)
  }
}

import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { within } from '../../../shared/kernel/async/deadline.ts'

/** A message that needs no waiting has its first event within this time. */
const FIRST_LOOK_MS = 250
/** The run may ask for a permission later, and ask again after an answer. */
const LOOK_EVERY_MS = 2_000

/**
 * The frames of a run. While there are none, its reader gets the text that `find` returns, each time that text changes: the permission requests
 * that the run waits for (D39.2), or its place in the queue (D54.3). This is no event of the run, so its number is 0.
 */
export class AnnouncedFrames implements AsyncIterableIterator<Frames, undefined> {
  readonly #frames: AsyncIterator<Frames, undefined>
  readonly #find: () => Promise<string>
  #first: Promise<IteratorResult<Frames, undefined>> | undefined
  #hasBegun = false
  #announced = ''
  #waitMs = FIRST_LOOK_MS

  constructor(frames: FrameStream, find: () => Promise<string>) {
    this.#frames = frames[Symbol.asyncIterator]()
    this.#find = find
  }

  next(): Promise<IteratorResult<Frames, undefined>> {
    return this.#hasBegun ? this.#frames.next() : this.#waitForFirst()
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    await this.#frames.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #waitForFirst(): Promise<IteratorResult<Frames, undefined>> {
    this.#first ??= this.#frames.next()
    for (;;) {
      const first = await within(this.#waitMs, this.#first)
      if (first) {
        this.#hasBegun = true
        return first
      }
      this.#waitMs = LOOK_EVERY_MS
      const text = await this.#find().catch(() => '') // `find` is called again at the next look.
      if (text === this.#announced) continue
      this.#announced = text
      if (text !== '') return { done: false, value: { text, lastSeq: 0 } }
    }
  }
}

/** The place of a run in its tenant's queue of starts; empty for a run that does not wait. */
export function placeAnnouncement({
  place,
  expected_start: expected = null,
}: Pick<RunSummary, 'place' | 'expected_start'>): string {
  return place === undefined ? '' : renderFrame(0, { type: 'waiting', place, expected_start: expected })
}

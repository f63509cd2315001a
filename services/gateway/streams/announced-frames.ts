import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import type { FrameStream, Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { within } from '../../../shared/kernel/async/deadline.ts'

/** A message whose turn has come has its first event by then. */
const FIRST_LOOK_MS = 250
/** The run before it may ask later, and be answered and ask again. */
const LOOK_EVERY_MS = 2_000

/**
 * The frames of a run. As long as there are none, its reader gets what `find` returns, whenever that is another text: which permission requests the
 * run waits for (D39.2), or its place in the line (D54.3). That is no event of the run: its number is 0.
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
      const text = await this.#find().catch(() => '') // It is tried again at the next look.
      if (text === this.#announced) continue
      this.#announced = text
      if (text !== '') return { done: false, value: { text, lastSeq: 0 } }
    }
  }
}

/** Its place among the starts of its tenant that wait; nothing for a run that has one. */
export function placeAnnouncement({
  place,
  expected_start: expected = null,
}: Pick<RunSummary, 'place' | 'expected_start'>): string {
  return place === undefined ? '' : renderFrame(0, { type: 'waiting', place, expected_start: expected })
}

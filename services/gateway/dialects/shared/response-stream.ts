import type { FrameStream, Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import type { ReaderFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { RunEvent } from '../../../../shared/kernel/events.ts'
import { untilAborted } from '../../starting/run-answer.ts'
import { FrameDecoder } from '../../streams/run-events.ts'
import { ProjectedRun } from './projected-run.ts'
import type { Part, Projection } from './projection.ts'

/** A format of responses: how a list of chunks is written. `end` follows the last one. */
export type Wire<Chunk> = { render(chunks: readonly Chunk[]): string; end: string }

/** The frames of one response in another format, for the relay that also sends the run's own frames. */
class ResponseStream<Chunk, Event extends RunEvent> implements AsyncIterableIterator<Frames, undefined> {
  readonly #frames: AsyncIterator<Frames>
  readonly #response: ProjectedRun<Chunk, Event>
  readonly #wire: Wire<Chunk>
  readonly #decoder = new FrameDecoder<Event>()
  #isBegun = false
  #lastSeq = 0

  constructor(frames: FrameStream, response: ProjectedRun<Chunk, Event>, wire: Wire<Chunk>) {
    this.#frames = frames[Symbol.asyncIterator]()
    this.#response = response
    this.#wire = wire
  }

  async next(): Promise<IteratorResult<Frames, undefined>> {
    if (!this.#isBegun) {
      this.#isBegun = true
      const text = this.#wire.render(this.#response.begin())
      if (text !== '') return this.#value(text)
    }
    while (!this.#response.isOver) {
      const { done, value } = await this.#frames.next()
      if (done === true) return { done: true, value: undefined }
      const text = this.#project(value)
      if (text !== '') return this.#value(text, value)
    }
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<Frames, undefined>> {
    await this.#frames.return?.()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #project(frames: Frames): string {
    this.#lastSeq = frames.lastSeq
    const chunks: Chunk[] = []
    for (const numbered of this.#decoder.take(frames)) chunks.push(...this.#response.take(numbered))
    const written = chunks.length > 0 ? this.#wire.render(chunks) : ''
    if (!this.#response.isOver) return written
    void this.#frames.return?.()?.catch(() => {}) // The response is complete, so a failure to close the run's stream does not matter.
    return written + this.#wire.end
  }

  #value(text: string, { failure }: Partial<Frames> = {}): IteratorResult<Frames, undefined> {
    return { done: false, value: { text, lastSeq: this.#lastSeq, ...(failure && { failure }) } }
  }
}

export type Source = Part & { frames: FrameStream }

/** The frames of a response for the relay, its last text when the gateway cuts it off, and whether it is complete. */
export function streamOf<Chunk, Event extends RunEvent>(
  { frames, ...part }: Source,
  projection: Projection<Chunk, Event>,
  wire: Wire<Chunk>,
) {
  const response = new ProjectedRun(projection, part)
  return {
    frames: new ResponseStream(frames, response, wire),
    isOver: () => response.isOver,
    farewell: (_lastSeq: number, code: ReaderFailure) => wire.render(projection.cut(code)) + wire.end,
  }
}

/**
 * Reads a response to its end, for an answer in one piece, or up to event number `until` of its run. When `signal` aborts, it stops reading
 * and throws the signal's reason.
 */
export async function readResponse<Chunk, Event extends RunEvent>(
  { frames, ...part }: Source,
  projection: Projection<Chunk, Event>,
  { signal, until = Number.POSITIVE_INFINITY }: { signal: AbortSignal; until?: number },
): Promise<void> {
  const response = new ProjectedRun(projection, part)
  const decoder = new FrameDecoder<Event>()
  response.begin()
  if (until === 0) return void (await frames[Symbol.asyncIterator]().return?.()) // A stream that is open but not read would slow down the run.
  for await (const each of untilAborted(frames, signal)) {
    for (const numbered of decoder.take(each)) {
      if (numbered.seq <= until) response.take(numbered)
    }
    if (response.isOver || each.lastSeq >= until) return
  }
  signal.throwIfAborted()
}

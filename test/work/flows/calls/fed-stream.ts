import type { Frames } from '../../../../shared/cluster/journal/frame-stream.ts'

/** A stream that a test feeds by hand. `return` ends a wait that is under way, as the relay's streams do. */
export class FedStream implements AsyncIterableIterator<Frames> {
  readonly #fed: Frames[] = []
  #isEnded = false
  #wake = () => {}
  returns = 0

  push(frames: Frames): void {
    this.#fed.push(frames)
    this.#wake()
  }

  end(): void {
    this.#isEnded = true
    this.#wake()
  }

  async next(): Promise<IteratorResult<Frames>> {
    while (this.#fed.length === 0 && !this.#isEnded) await new Promise<void>((resolve) => (this.#wake = resolve))
    const value = this.#fed.shift()
    return value ? { done: false, value } : { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<Frames>> {
    this.returns++
    this.end()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

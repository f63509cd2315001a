import type { IncomingMessage } from 'node:http'

const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * The body of a response, pulled: all that has come since the last time, at once. What is not pulled stays in Node's buffer
 * of 64 KiB and then in the kernel's. By hand, because the stream's own iterator costs several times as much.
 */
export class ResponseBytes implements AsyncIterableIterator<Uint8Array> {
  readonly #res: IncomingMessage
  #wake: (() => void) | undefined

  constructor(res: IncomingMessage) {
    this.#res = res
    const wake = () => this.#wake?.()
    res.on('readable', wake).on('end', wake).on('error', wake).on('close', wake)
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const chunk: Buffer | null = this.#res.read()
      if (chunk !== null) return { done: false, value: chunk }
      if (this.#res.readableEnded) return END
      if (this.#res.destroyed) throw this.#res.errored ?? new BrokenOff()
      await this.#news()
    }
  }

  /** Closes the connection, unless the body has been read to its end. */
  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#res.readableEnded) this.#res.destroy()
    return Promise.resolve(END)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}

class BrokenOff extends Error {
  readonly code = 'ECONNRESET'
}

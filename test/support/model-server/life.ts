import type { ServerResponse } from 'node:http'

/** The life of one request's connection: when it ends, and by whose doing. */
export class Life {
  readonly #res: ServerResponse
  readonly #gone = new AbortController()
  readonly #closedByClient = Promise.withResolvers<void>()
  #oursToEnd = false
  #closed = false

  constructor(res: ServerResponse) {
    this.#res = res
    res.once('close', () => {
      this.#closed = !res.writableFinished && !this.#oursToEnd
      if (this.#closed) this.#closedByClient.resolve()
      this.#gone.abort()
    })
  }

  /** The client left before it had the whole answer. */
  get closed(): boolean {
    return this.#closed
  }

  /** Aborts when the connection is gone or the answer has been sent. */
  get signal(): AbortSignal {
    return this.#gone.signal
  }

  get closedByClient(): Promise<void> {
    return this.#closedByClient.promise
  }

  /** From here on the end of the connection is this server's doing. */
  claimEnd(): void {
    this.#oursToEnd = true
  }

  /** Resets the connection once what was written before has left this process. */
  async reset(): Promise<void> {
    this.claimEnd()
    const { socket } = this.#res
    await new Promise((resolve) => socket?.write('', resolve) ?? resolve(undefined))
    socket?.resetAndDestroy()
  }
}

import type { ServerResponse } from 'node:http'

/** Tracks the connection of one request: whether it has ended, and which side ended it. */
export class Connection {
  readonly #res: ServerResponse
  readonly #ended = new AbortController()
  readonly #closedByClient = Promise.withResolvers<void>()
  #isEndedHere = false
  #closed = false

  constructor(res: ServerResponse) {
    this.#res = res
    res.once('close', () => {
      this.#closed = !res.writableFinished && !this.#isEndedHere
      if (this.#closed) this.#closedByClient.resolve()
      this.#ended.abort()
    })
  }

  /** The client closed the connection before it had the whole answer. */
  get closed(): boolean {
    return this.#closed
  }

  /** Aborts when the connection is closed or the answer was sent. */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  get closedByClient(): Promise<void> {
    return this.#closedByClient.promise
  }

  /** Call it before this server ends the connection, so that the end is not counted as the client's. */
  endsHere(): void {
    this.#isEndedHere = true
  }

  /** Resets the connection after everything written before was handed to the network. */
  async reset(): Promise<void> {
    this.endsHere()
    const { socket } = this.#res
    await new Promise((resolve) => socket?.write('', resolve) ?? resolve(undefined))
    socket?.resetAndDestroy()
  }
}

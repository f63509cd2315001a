import { connect, type Socket } from 'node:net'

/** A client on a bare socket, for requests that `fetch` cannot send. */
export class Wire {
  readonly socket: Socket
  readonly #closed = Promise.withResolvers<string>()
  #text = ''
  #wake: (() => void) | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (bytes) => {
      this.#text += bytes.toString('latin1')
      this.#wake?.()
    })
    socket.once('error', (error) => this.#closed.reject(error))
    socket.once('close', () => {
      this.#closed.resolve(this.#text)
      this.#wake?.()
    })
    this.#closed.promise.catch(() => {}) // A test may ignore how the connection ended.
  }

  static open(port: number, options: { halfOpen?: boolean } = {}): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: options.halfOpen ?? false })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new Wire(socket))
      })
    })
  }

  /** The text received so far. */
  get text(): string {
    return this.#text
  }

  send(...lines: string[]): this {
    this.socket.write(lines.join('\r\n'))
    return this
  }

  /** Resolves with the text received so far as soon as it matches. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#text)) {
      if (this.socket.closed) throw new Error(`the connection ended with: ${this.#text}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#text
  }

  /** Resolves with all the text when the server has closed the connection. Rejects when the connection was reset. */
  get end(): Promise<string> {
    return this.#closed.promise
  }
}

/** Renders a whole request. */
export const request = (head: string, headers: Record<string, string | number> = {}, body = ''): string =>
  [head, ...Object.entries({ Host: 'localhost', ...headers }).map(([k, v]) => `${k}: ${v}`), '', body].join('\r\n')

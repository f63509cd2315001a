import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Passes connections to an address of this machine on to a port of its loopback, for containers, which cannot reach that. */
export class Forwarder implements AsyncDisposable {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const upstream = connect(port, '127.0.0.1')
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(from)
        from.on('error', () => {}).on('close', () => to.destroy() && this.#sockets.delete(from))
        from.pipe(to)
      }
    })
  }

  static async start(host: string, port: number): Promise<Forwarder> {
    const forwarder = new Forwarder(port)
    await once(forwarder.#server.listen(0, host), 'listening')
    return forwarder
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server.close(), 'close')
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'

/** A listener on all addresses of this machine that counts the connections and closes them. */
export class Trap implements AsyncDisposable {
  readonly #server: Server
  connections = 0

  private constructor() {
    this.#server = createServer((socket) => {
      this.connections += 1
      socket.destroy()
    })
  }

  static async open(): Promise<Trap> {
    const trap = new Trap()
    trap.#server.listen(0, '::')
    await once(trap.#server, 'listening')
    return trap
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    await once(this.#server, 'close')
  }
}

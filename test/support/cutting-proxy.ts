import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** When connections are broken: the first one through which a text has come, each one behind so many bytes, or with neither by `cutAll` only. */
type Cutting = { after?: string; afterBytes?: number }

/** Passes connections on to a port of this machine, and breaks them. */
export class CuttingProxy {
  readonly server: Server
  cuts = 0
  readonly #clients = new Set<Socket>()

  private constructor(target: number, { after, afterBytes = Number.POSITIVE_INFINITY }: Cutting) {
    this.server = createServer((client) => {
      const upstream = connect(target, '127.0.0.1')
      const end = (socket: Socket, other: Socket) => socket.on('error', () => {}).on('close', () => other.destroy())
      end(client, upstream)
      end(upstream, client)
      this.#clients.add(client)
      client.on('close', () => this.#clients.delete(client))
      client.pipe(upstream)
      let left = afterBytes
      upstream.on('data', (bytes: Buffer) => {
        client.write(bytes.subarray(0, left))
        left -= bytes.length
        const hasText = after !== undefined && this.cuts === 0 && bytes.includes(after)
        if (left > 0 && !hasText) return
        this.cuts++
        upstream.pause()
        client.destroySoon()
      })
    }).listen(0, '127.0.0.1')
  }

  static async open(target: number, cutting: Cutting): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target, cutting)
    await once(proxy.server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  [Symbol.dispose](): void {
    this.close()
  }

  close(): void {
    this.server.close()
    for (const client of this.#clients) client.destroy()
  }

  cutAll(): void {
    for (const client of this.#clients) {
      this.cuts++
      client.destroy()
    }
  }
}

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** When connections are broken: those through which a text has come for the first time, all of them at intervals, or with neither by `cutAll` only. */
type Cutting = { after?: string; everyMs?: number }

/** Passes connections on to a port of this machine, and breaks them. */
export class CuttingProxy {
  readonly server: Server
  cuts = 0
  readonly #clients = new Set<Socket>()
  readonly #timer: NodeJS.Timeout | undefined

  private constructor(target: number, { after, everyMs }: Cutting) {
    this.server = createServer((client) => {
      const upstream = connect(target, '127.0.0.1')
      const end = (socket: Socket, other: Socket) => socket.on('error', () => {}).on('close', () => other.destroy())
      end(client, upstream)
      end(upstream, client)
      this.#clients.add(client)
      client.on('close', () => this.#clients.delete(client))
      client.pipe(upstream)
      upstream.on('data', (bytes: Buffer) => {
        client.write(bytes)
        if (after === undefined || this.cuts > 0 || !bytes.includes(after)) return
        this.cuts++
        client.destroySoon()
      })
    }).listen(0, '127.0.0.1')
    if (everyMs !== undefined) this.#timer = setInterval(() => this.cutAll(), everyMs)
  }

  static async open(target: number, cutting: Cutting): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target, cutting)
    await once(proxy.server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  close(): void {
    clearInterval(this.#timer)
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

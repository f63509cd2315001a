import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Target, TYPES } from './doors.ts'

const STATUSES = [301, 302, 303, 307, 308]

/** A server that may be called and redirects to one that may not, and to another that may: nobody follows. */
export class Redirecting implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(trapPort: number): Promise<Redirecting> {
    const server = createServer((req, res) => {
      const [, status = '302', to = ''] = /^\/(\d+)\/(trap|metadata)/.exec(req.url ?? '') ?? []
      const location = to === 'trap' ? `http://127.0.0.1:${trapPort}/` : 'http://169.254.169.254/latest/'
      res.writeHead(Number(status), { location }).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Redirecting(server)
  }

  get targets(): Target[] {
    return STATUSES.flatMap((status, i) =>
      ['trap', 'metadata'].map((to, j): Target => {
        const type = TYPES[(2 * i + j) % TYPES.length] ?? 'openai'
        return { name: `r${status}-${to}`, type, url: `${this.#origin}/${status}/${to}` }
      }),
    )
  }

  get toMetadata(): string[] {
    return STATUSES.map((status) => `${this.#origin}/${status}/metadata`)
  }

  get #origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}

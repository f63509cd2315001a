import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'

const CONCURRENCY = 32

/** Sends tokens to `GET /tools` of one gateway, which requires a token and has no side effects. */
export class TokenProbe implements Disposable {
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY })

  /** The gateway's address with the base path. */
  constructor(url: string) {
    this.#url = `${url}/tools`
  }

  /** The status with which the gateway answers a token. */
  async status(token: string): Promise<number> {
    const req = get(this.#url, { agent: this.#agent, headers: { authorization: `Bearer ${token}` } })
    const [res]: IncomingMessage[] = await once(req, 'response')
    if (!res) throw new Error('no answer')
    if (!res.resume().complete) await once(res, 'end')
    return res.statusCode ?? 0
  }

  /** The statuses for these tokens, in their order. Sends 32 requests at a time. */
  async statuses(tokens: readonly string[]): Promise<number[]> {
    const answers: number[] = []
    const queue = tokens.entries()
    const worker = async () => {
      for (const [i, token] of queue) answers[i] = await this.status(token)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, worker))
    return answers
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}

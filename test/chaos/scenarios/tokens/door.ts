import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'

const LANES = 32

/** Where tokens are tried: `GET /tools` of one gateway, which asks for a token and for nothing else. */
export class Door implements Disposable {
  readonly #url: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: LANES })

  /** The gateway's address with the base path. */
  constructor(url: string) {
    this.#url = `${url}/tools`
  }

  /** How the gateway answers this token. */
  async status(token: string): Promise<number> {
    const req = get(this.#url, { agent: this.#agent, headers: { authorization: `Bearer ${token}` } })
    const [res]: IncomingMessage[] = await once(req, 'response')
    if (!res) throw new Error('no answer')
    if (!res.resume().complete) await once(res, 'end')
    return res.statusCode ?? 0
  }

  /** The answers to these tokens, in their order; so many at once as there are lanes. */
  async statuses(tokens: readonly string[]): Promise<number[]> {
    const answers: number[] = []
    const queue = tokens.entries()
    const lane = async () => {
      for (const [i, token] of queue) answers[i] = await this.status(token)
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    return answers
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}

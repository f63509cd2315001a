import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import type { Dialect } from './dialect.ts'
import { StreamReader } from './stream-reader.ts'

export type Target = { port: number; dialect: Dialect }

export type Streamed = {
  /** Time from the request to the first text event. */
  firstMs: number
  totalMs: number
}

/** `onGap` is called with the time between two reads of the stream. */
type Paced = { everyMs?: number; path?: string; tool?: string | undefined; onGap?: (ms: number) => void }
type Sent = { body?: string; headers?: Record<string, string> }

/** Sends requests to one server over kept connections. It uses only node:http, so that the client costs little. */
export class Client {
  readonly #target: Target
  readonly #signal: AbortSignal
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

  constructor(target: Target, signal: AbortSignal) {
    this.#target = target
    this.#signal = signal
  }

  /**
   * Starts a run of `tokens` tokens, one each `everyMs`, and reads it to the end. With a `tool`, a name and its input, the run calls it, and has as many
   * tokens once more behind it. Throws when the stream is not complete.
   */
  async stream(
    tokens: number,
    { everyMs = 0, path = this.#target.dialect.runPath, tool, onGap }: Paced = {},
  ): Promise<Streamed> {
    const { dialect } = this.#target
    const answer = `/tokens ${tokens} ${everyMs}`
    const prompt = tool === undefined ? answer : `${answer}\n/tool ${tool}\n/then\n${answer}`
    const start = performance.now()
    const res = await this.#post(path, dialect.body(prompt))
    const reader = new StreamReader(dialect)
    let firstMs = 0
    let readAt: number | undefined
    res.on('data', (chunk: string) => {
      reader.read(chunk)
      if (onGap) {
        const now = performance.now()
        if (readAt !== undefined) onGap(now - readAt)
        readAt = now
      }
      if (firstMs === 0 && reader.events > 0) firstMs = performance.now() - start
    })
    await once(res, 'end', { signal: this.#signal })
    const totalMs = performance.now() - start
    if (res.statusCode === 200 && reader.isComplete(tokens, tool === undefined ? 1 : 2)) return { firstMs, totalMs }
    throw new Error(`${path} answered ${res.statusCode} with ${reader.events} of ${tokens} text events`)
  }

  /** Sends a JSON request and resolves with the body of its JSON answer. */
  async json(path: string, body: object): Promise<unknown> {
    return JSON.parse(await this.text(path, body))
  }

  /** Sends a JSON request and resolves with the body of its answer. */
  async text(path: string, body: object, headers: Record<string, string> = {}): Promise<string> {
    const res = await this.#post(path, JSON.stringify(body), headers)
    const text = await this.#read(res)
    if (res.statusCode !== undefined && res.statusCode < 300) return text
    throw new Error(`${path} answered ${res.statusCode}: ${text.slice(0, 200)}`)
  }

  /** Reads an answer to its end. Throws unless it holds `expected`. */
  async readToEnd(path: string, expected: string): Promise<void> {
    const text = await this.#read(await this.#send('GET', path))
    if (!text.includes(expected)) throw new Error(`${path} answered ${text.slice(-200)}`)
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }

  async #read(res: IncomingMessage): Promise<string> {
    let text = ''
    for await (const chunk of res) text += chunk
    return text
  }

  #post(path: string, body: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    return this.#send('POST', path, { body, headers })
  }

  async #send(method: 'GET' | 'POST', path: string, { body, headers: given }: Sent = {}): Promise<IncomingMessage> {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body ?? ''), ...given }
    const req = request({
      host: '127.0.0.1',
      port: this.#target.port,
      method,
      path,
      agent: this.#agent,
      signal: this.#signal,
      ...(body !== undefined && { headers }),
    })
    req.end(body)
    const [res]: IncomingMessage[] = await once(req, 'response')
    if (!res) throw new Error(`${path} did not answer`)
    return res.setEncoding('latin1')
  }
}

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent, given } from './child.ts'

/** The tokens a minute that the provider allows. */
export const LIMIT = 1_000_000
/** How long it takes until its first text. */
export const MODEL_MS = 200

/** `isWindow`: it counts by the minute. */
export type ProviderGiven = { isWindow: boolean }
export type Tally = { calls: number; refused: number; tokens: number }

/** A token bucket as OpenAI and Anthropic have them, or a count that begins anew each minute. */
class Quota {
  readonly #isWindow: boolean
  #left = LIMIT
  #at = performance.now()
  #windowEnd = performance.now() + 60_000

  constructor(isWindow: boolean) {
    this.#isWindow = isWindow
  }

  take(tokens: number): boolean {
    const now = performance.now()
    if (this.#isWindow) {
      while (now >= this.#windowEnd) [this.#left, this.#windowEnd] = [LIMIT, this.#windowEnd + 60_000]
    } else this.#left = Math.min(LIMIT, this.#left + ((now - this.#at) * LIMIT) / 60_000)
    this.#at = now
    if (this.#left < tokens) return false
    this.#left -= tokens
    return true
  }

  headers(): Record<string, string> {
    const reset = this.#isWindow ? this.#windowEnd - this.#at : ((LIMIT - this.#left) * 60_000) / LIMIT
    return {
      'x-ratelimit-limit-tokens': String(LIMIT),
      'x-ratelimit-remaining-tokens': String(Math.floor(this.#left)),
      'x-ratelimit-reset-tokens': `${(reset / 1_000).toFixed(3)}s`,
    }
  }

  retryAfter(tokens: number): string {
    const ms = this.#isWindow ? this.#windowEnd - this.#at : ((tokens - this.#left) * 60_000) / LIMIT
    return String(Math.max(1, Math.ceil(ms / 1_000)))
  }
}

/** It answers with its port, and with what it has counted since it was asked last. */
function serve({ isWindow }: ProviderGiven): void {
  const quota = new Quota(isWindow)
  const tally: Tally = { calls: 0, refused: 0, tokens: 0 }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => answer(res, Buffer.concat(chunks)))
  })
  const answer = (res: ServerResponse, body: Buffer) => {
    const input = Math.ceil(body.length / 4)
    const output = 20 + Math.floor(Math.random() * 80)
    const tokens = input + output
    tally.calls++
    if (!quota.take(tokens)) {
      tally.refused++
      const retry = { 'retry-after': quota.retryAfter(tokens), 'content-type': 'application/json' }
      res.writeHead(429, { ...quota.headers(), ...retry })
      return void res.end('{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}')
    }
    tally.tokens += tokens
    res.writeHead(200, { ...quota.headers(), 'content-type': 'text/event-stream' })
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: tokens }
    const chunk = (delta: object, rest: object = {}) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, ...rest }] })}\n\n`
    setTimeout(() => {
      res.write(chunk({ role: 'assistant', content: 'x'.repeat(4 * output) }))
      res.write(chunk({}, { finish_reason: 'stop' }))
      res.end(`data: ${JSON.stringify({ id: 'c', choices: [], usage })}\n\ndata: [DONE]\n\n`)
    }, MODEL_MS)
  }
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
    const { port } = server.address() as AddressInfo
    answerParent(async (question: 'port' | 'count'): Promise<number | Tally> => {
      if (question === 'port') return port
      const counted = { ...tally }
      Object.assign(tally, { calls: 0, refused: 0, tokens: 0 })
      return counted
    })
  })
}

if (process.argv[1] === import.meta.filename) serve(given() as ProviderGiven)

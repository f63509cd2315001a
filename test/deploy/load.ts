import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventStream } from '../support/event-stream.ts'

/** A short run: a few frames over half a second. */
const PROMPT = Array.from({ length: 5 }, (_, n) => `/say part ${n}\n/sleep 100`).join('\n')

/** Connections are not reused: nginx closes idle ones when it reloads, and a request that is just being sent on one would break. */
const HEADERS = { 'content-type': 'application/json', connection: 'close' }

/** Headers of every request besides, such as a token. */
type Headers = Readonly<Record<string, string>>

/** A client's pause between two requests: without it the clients take the CPU time that the processes they watch need. */
const PAUSE_MS = 800

export type Counts = { runs: number; messages: number; flows: number; reads: number }

/** Clients that use a cluster until they are stopped, and note everything that fails. */
export class Load {
  readonly counts: Counts = { runs: 0, messages: 0, flows: 0, reads: 0 }
  readonly failures: string[] = []
  readonly #url: string
  readonly #headers: Headers
  readonly #stop = new AbortController()
  #clients: Promise<void>[] = []
  readonly #sent = new Map<string, number>()

  constructor(url: string, headers: Headers = {}) {
    this.#url = url
    this.#headers = { ...HEADERS, ...headers }
  }

  /** Starts clients of each kind. `flow` is a published flow, which runs with the instance `main`. */
  async start({ clients, flow }: { clients: number; flow: string }): Promise<void> {
    for (let n = 0; n < clients; n++) {
      const { session_id: session } = (await this.#json('POST', '/sessions', {})) as { session_id: string }
      this.#clients.push(
        this.#repeat('runs', () => this.#run('/agent/run')),
        this.#repeat('messages', async () => {
          await this.#run(`/sessions/${session}/messages`)
          this.#sent.set(session, (this.#sent.get(session) ?? 0) + 1)
        }),
        this.#repeat('flows', () => this.#runFlow(flow)),
        this.#repeat('reads', () => this.#json('GET', `/sessions/${session}`)),
      )
    }
  }

  /** Lets the clients finish what they began. Then compares each session with what its client sent. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#clients)
    for (const [session, sent] of this.#sent) {
      const { message_count: found } = (await this.#json('GET', `/sessions/${session}`)) as { message_count: number }
      if (found !== 2 * sent) this.failures.push(`session ${session} has ${found} messages instead of ${2 * sent}`)
    }
  }

  async #repeat(kind: keyof Counts, work: () => Promise<unknown>): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await work()
        this.counts[kind]++
        await sleep(PAUSE_MS)
      } catch (cause) {
        const what = cause instanceof Error ? `${cause.message} ${String(cause.cause ?? '')}` : cause
        this.failures.push(`${kind} at ${new Date().toISOString()}: ${what}`)
        return
      }
    }
  }

  /** Reads a whole stream; a half frame or a broken stream throws. */
  async #run(path: string): Promise<void> {
    const body = JSON.stringify({ prompt: PROMPT })
    const stream = await EventStream.open(this.#url + path, { method: 'POST', headers: this.#headers, body })
    const last = (await stream.all()).at(-1)
    if (last?.event !== 'done') throw new Error(`ended with ${JSON.stringify(last)}`)
  }

  /**
   * Repeats a call, with its key, whose schema took too long to compile: that limit is 200 ms on the clock, which passes on a machine that
   * other tests load.
   */
  async #runFlow(flow: string): Promise<void> {
    const body = { provider_instance: 'main', model: 'm-1', input: { text: 'a text' } }
    const key = { 'idempotency-key': randomUUID() }
    const call = () => this.#json('POST', `/flows/${flow}/run`, body, key)
    const isSlow = (cause: unknown) => cause instanceof Error && cause.message.includes('compiled within')
    const again = (cause: unknown) => (isSlow(cause) && !this.#stop.signal.aborted ? call() : Promise.reject(cause))
    const answer = await call().catch(again).catch(again)
    if ((answer as { verdict?: string }).verdict !== 'ok') throw new Error(JSON.stringify(answer))
  }

  async #json(method: string, path: string, body?: object, headers: Headers = {}): Promise<unknown> {
    const init = { method, headers: { ...this.#headers, ...headers }, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(this.#url + path, init)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status} ${text}`)
    return JSON.parse(text)
  }
}

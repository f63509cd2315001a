import { type Call, call, type Reply } from '../api.ts'

/** One answer of an attack. `what` names the request and what was hostile about it. */
export type Timed = { what: string; kind: 'save' | 'publish' | 'run'; status: number; ms: number; text: string }

export type FlowDraft = { input_schema: object; output_schema: object } & Record<string, unknown>

export const INSTANCE = 'model'
export const ANYTHING = { type: 'object' }

/** Stores, publishes and runs the flows of one tenant, and keeps every answer. */
export class FlowClient {
  readonly answers: Timed[] = []
  readonly #url: string
  readonly #headers: Record<string, string>

  constructor(url: string, headers: Record<string, string>) {
    this.#url = url
    this.#headers = headers
  }

  /** Throws when a request of the preparation is refused. */
  async prepare(request: Call): Promise<Reply> {
    const reply = await call(this.#url, { ...request, headers: this.#headers })
    if (reply.status > 299) throw new Error(`${request.method} ${request.path}: ${reply.status} ${reply.text}`)
    return reply
  }

  /** Stores and publishes a flow. Returns whether both were accepted. */
  async publish(what: string, flow: string, definition: FlowDraft): Promise<boolean> {
    const saved = await this.#ask('save', what, { method: 'PUT', path: `/flows/${flow}`, body: definition })
    if (saved.status !== 200) return false
    const published = await this.#ask('publish', what, { method: 'POST', path: `/flows/${flow}/publish` })
    return published.status === 200
  }

  run(what: string, flow: string, input: unknown): Promise<Timed> {
    const body = { input, provider_instance: INSTANCE, model: 'm' }
    return this.#ask('run', what, { method: 'POST', path: `/flows/${flow}/run`, body })
  }

  /** The time does not include the one that this script needs for the body. */
  async #ask(kind: Timed['kind'], what: string, { method, path, body }: Call): Promise<Timed> {
    const headers = { ...this.#headers, ...(body !== undefined && { 'content-type': 'application/json' }) }
    const init = { method, headers, ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }) }
    const from = performance.now()
    const response = await fetch(this.#url + path, init)
    const text = await response.text()
    const { status } = response
    const timed = { what: `${method} ${path} ${what}`, kind, status, ms: performance.now() - from, text }
    this.answers.push(timed)
    return timed
  }
}

import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fixtures } from './case.ts'
import { INSTANCE, OPEN_FLOW } from './flow-requests.ts'
import { TOKEN } from './request.ts'

type Json = Record<string, unknown>

const WITHIN_MS = 10_000
const FOREVER = '/say a\n/sleep 600000'
const ASK = '/tool Write {"path":"a","content":"b"}'

/** Creates and reads sessions and runs on the attacked server through valid requests. */
export class World {
  readonly #url: string
  readonly #held = new AbortController()

  readonly #modelUrl: string

  /** `modelUrl` is that of a provider for flows, which answers `{}`. */
  constructor(port: number, modelUrl: string) {
    this.#modelUrl = modelUrl
    this.#url = `http://127.0.0.1:${port}/v1`
  }

  /**
   * Creates a session with one exchange, a run that lasts until `leave`, one that waits for a permission until then, a published
   * flow that was run once, and a plan that is done.
   */
  async make(session: string): Promise<Fixtures> {
    await this.#json('POST', '/sessions', { session_id: session }).catch(() => {}) // It may exist already.
    await (await this.#ask('POST', `/sessions/${session}/messages`, { prompt: '/say a' })).text()
    const run = await this.#hold(FOREVER, 'text')
    const asking = await this.#hold(ASK, 'permission_request')
    const permission = /"(perm_[0-9a-f]{32})"/.exec(asking.seen)?.[1] ?? ''
    return {
      session,
      run: run.id,
      asking: asking.id,
      permission,
      ...(await this.#makeFlow(session)),
      plan: await this.#makePlan(),
    }
  }

  async #makePlan(): Promise<string> {
    const { id } = await this.#json('POST', '/plans/submit', { steps: [{ id: 'a', prompt: '/say a' }] })
    await (await this.#ask('GET', `/plans/${id}/events`)).text()
    return String(id)
  }

  async #makeFlow(flow: string): Promise<Pick<Fixtures, 'flow' | 'trace' | 'entry'>> {
    const body = { type: 'openai-compatible', url: this.#modelUrl, key: 'k' }
    await this.#json('PUT', `/config/instances/${INSTANCE}`, body)
    await this.#json('PUT', `/flows/${flow}`, OPEN_FLOW)
    await this.#json('POST', `/flows/${flow}/publish`)
    const { id: entry } = await this.#json('POST', `/flows/${flow}/memory`, { content: 'a correction' })
    const request = { input: {}, provider_instance: INSTANCE, model: 'm' }
    const { trace_id: trace } = await this.#json('POST', `/flows/${flow}/run`, request)
    return { flow, trace: String(trace), entry: String(entry) }
  }

  /** The fixtures as a client sees them, and the files on disk: hostile requests must not change them. */
  async snapshot({ session, run, asking, flow, trace, plan }: Fixtures, dataDir: string): Promise<string[]> {
    const answers = [
      await this.#json('GET', `/sessions/${session}`),
      await this.#json('GET', `/runs/${run}`),
      await this.#json('GET', `/runs/${asking}`),
      await this.#json('GET', `/flows/${flow}`),
      await this.#json('GET', `/flows/${flow}/memory`),
      await this.#json('GET', `/dispatches/${trace}`),
      await this.#json('GET', `/plans/${plan}`),
      await this.#runsAtRest(),
    ]
    const entries = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name)
    return [...answers.map((answer) => JSON.stringify(answer)), `files: ${files.toSorted().join(' ')}`]
  }

  /** Deletes these fixtures and nothing else. */
  async end({ run, asking, session, flow }: Fixtures): Promise<void> {
    for (const path of [`/runs/${run}`, `/runs/${asking}`, `/sessions/${session}`, `/flows/${flow}`]) {
      await (await this.#ask('DELETE', path)).arrayBuffer()
    }
  }

  leave(): void {
    this.#held.abort()
  }

  /** The runs that go on, when those of the fuzzing have ended. */
  async #runsAtRest(): Promise<Json[]> {
    const end = performance.now() + WITHIN_MS
    for (;;) {
      const pages = await Promise.all(
        ['running', 'waiting'].map((status) => this.#json('GET', `/runs?limit=200&status=${status}`)),
      )
      const runs = pages.flatMap((page) => page['runs'] as Json[])
      if (runs.length <= 2 || performance.now() > end) return runs
      await sleep(100)
    }
  }

  /** Starts a run, reads it up to an event, and keeps it open. */
  async #hold(prompt: string, event: string): Promise<{ id: string; seen: string }> {
    const response = await this.#ask('POST', '/agent/run', { prompt }, this.#held.signal)
    const id = response.headers.get('x-run-id') ?? ''
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let seen = ''
    while (!seen.includes(`event: ${event}\n`)) {
      const { done, value } = (await reader?.read()) ?? { done: true }
      if (done) throw new Error(`the run ended before ${event}: ${seen}`)
      seen += value
    }
    return { id, seen }
  }

  async #json(method: string, path: string, body?: Json): Promise<Json> {
    const response = await this.#ask(method, path, body)
    const text = await response.text()
    if (response.ok) return JSON.parse(text) as Json
    throw new Error(`${method} ${path}: ${response.status} ${text}`)
  }

  #ask(method: string, path: string, body?: Json, signal?: AbortSignal): Promise<Response> {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) }
    return fetch(this.#url + path, {
      method,
      headers,
      signal: signal ?? AbortSignal.timeout(WITHIN_MS),
      ...(body && { body: JSON.stringify(body) }),
    })
  }
}

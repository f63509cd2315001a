import { setTimeout as sleep } from 'node:timers/promises'
import { readBlock } from '../../../support/sse-blocks.ts'

const AGAIN_MS = 200

/** The runs that `GET /events` has told of. A reader that is cut comes back where it was. */
export class TenantEvents implements AsyncDisposable {
  readonly started = new Set<string>()
  readonly ended = new Set<string>()
  /** Ends that came before their begins. */
  readonly early: string[] = []
  readonly #urlOf: () => string
  readonly #left = new AbortController()
  readonly #reading: Promise<void>
  #lastId = ''

  constructor(urlOf: () => string) {
    this.#urlOf = urlOf
    this.#reading = this.#read()
  }

  /** The runs whose begin or end is missing. */
  get unpaired(): string[] {
    return [...this.started.symmetricDifference(this.ended), ...this.early]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort()
    await this.#reading
  }

  async #read(): Promise<void> {
    const { signal } = this.#left
    while (!signal.aborted) {
      await this.#readOnce(signal).catch(() => {}) // Its connection broke, or it was refused.
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => {})
    }
  }

  async #readOnce(signal: AbortSignal): Promise<void> {
    const headers = { accept: 'text/event-stream', ...(this.#lastId !== '' && { 'last-event-id': this.#lastId }) }
    const { body } = await fetch(`${this.#urlOf()}/events?types=run.started,run.ended`, { headers, signal })
    let rest = ''
    const decoder = new TextDecoder()
    for await (const bytes of body ?? []) {
      const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) this.#take(readBlock(block).frame)
    }
  }

  #take(frame: string): void {
    const [, id] = /^id: (.*)$/m.exec(frame) ?? []
    const [, event] = /^event: (.*)$/m.exec(frame) ?? []
    const [, run] = /"run_id":"(run_\w+)"/.exec(frame) ?? []
    if (id !== undefined) this.#lastId = id
    if (run === undefined) return
    if (event === 'run.started') this.started.add(run)
    if (event !== 'run.ended') return
    if (!this.started.has(run)) this.early.push(run)
    this.ended.add(run)
  }
}

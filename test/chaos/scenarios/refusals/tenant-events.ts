import { setTimeout as sleep } from 'node:timers/promises'
import { readBlock } from '../../../support/sse-blocks.ts'

const AGAIN_MS = 200

/** The runs that `GET /events` has told of, but for those that began before it was open. A reader that is cut comes back where it was. */
export class TenantEvents implements AsyncDisposable {
  readonly started = new Set<string>()
  readonly ended = new Set<string>()
  /** Ends that came before their begins. */
  readonly early: string[] = []
  /** What the stream said of events that are lost. */
  readonly resets: string[] = []
  readonly #urlOf: () => string
  readonly #left = new AbortController()
  readonly #opened = Promise.withResolvers<void>()
  readonly #reading: Promise<void>
  #lastId = ''
  #openedAt = '9'

  private constructor(urlOf: () => string) {
    this.#urlOf = urlOf
    this.#reading = this.#read()
  }

  /** Resolves when the stream is open: a reader without a last event gets none of the events before. */
  static async open(urlOf: () => string): Promise<TenantEvents> {
    const events = new TenantEvents(urlOf)
    await events.#opened.promise
    events.#openedAt = new Date().toISOString()
    return events
  }

  /** The runs whose begin or end is missing, or came in the wrong order. */
  get unpaired(): string[] {
    return [
      ...[...this.started.difference(this.ended)].map((run) => `${run} has no end`),
      ...[...this.ended.difference(this.started)].map((run) => `${run} has no begin`),
      ...this.early.filter((run) => this.started.has(run)).map((run) => `${run} ended before it began`),
      ...this.resets,
    ]
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
    const { body, ok } = await fetch(`${this.#urlOf()}/events?types=run.started,run.ended`, { headers, signal })
    if (ok) this.#opened.resolve()
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
    if (event === 'reset') this.resets.push(`events before ${id} are lost`)
    const [, startedAt = ''] = /"started_at":"([^"]+)"/.exec(frame) ?? []
    if (run === undefined || startedAt < this.#openedAt) return
    if (event === 'run.started') this.started.add(run)
    if (event !== 'run.ended') return
    if (!this.started.has(run)) this.early.push(run)
    this.ended.add(run)
  }
}

import { blocksOf, readBlock } from './sse-blocks.ts'

export type SeenEvent = { id: string; event: string; data: Record<string, unknown> }

/** Reads `GET /events` as a client. */
export class TenantEvents {
  readonly seen: SeenEvent[] = []
  readonly response: Response
  readonly #abort: AbortController
  readonly #blocks: AsyncGenerator<string, void, undefined>

  private constructor(response: Response, abort: AbortController) {
    this.response = response
    this.#abort = abort
    this.#blocks = blocksOf(response)
  }

  /** Throws when the answer is not a stream. `url` includes the base path. */
  static async open(url: string, query = '', headers: Record<string, string> = {}): Promise<TenantEvents> {
    const abort = new AbortController()
    const response = await fetch(`${url}/events${query}`, { headers, signal: abort.signal })
    if (response.status !== 200) throw new Error(`no stream: ${response.status} ${await response.text()}`)
    return new TenantEvents(response, abort)
  }

  get lastId(): string {
    return this.seen.at(-1)?.id ?? ''
  }

  /** Reads on to the next event of this name whose data holds these values. Throws at the end of the stream. */
  async until(event: string, values: Record<string, unknown> = {}): Promise<SeenEvent> {
    for (let block = await this.#blocks.next(); !block.done; block = await this.#blocks.next()) {
      const [, id, name, data] = /^id: (\S+)\nevent: (\S+)\ndata: (.*)$/.exec(readBlock(block.value).frame) ?? []
      if (id === undefined || name === undefined || data === undefined) continue
      const seen: SeenEvent = { id, event: name, data: JSON.parse(data) as SeenEvent['data'] }
      this.seen.push(seen)
      if (name === event && Object.entries(values).every(([key, value]) => seen.data[key] === value)) return seen
    }
    throw new Error(`the stream ended without ${event}: ${this.seen.map((each) => each.event).join(' ')}`)
  }

  /** Resolves when the server ends the stream. */
  async end(): Promise<void> {
    while (!(await this.#blocks.next()).done);
  }

  leave(): void {
    this.#abort.abort()
  }
}

import type { Call, Transport } from './transport.ts'

export type Page<Item> = { items: Item[]; next_cursor: string | null; incomplete?: boolean }

/** A list of the API: iterate over all its items, or read one page. */
export class Pages<Item> implements AsyncIterable<Item> {
  readonly #transport: Transport
  readonly #path: string
  readonly #call: Call

  constructor(transport: Transport, path: string, call: Call) {
    this.#transport = transport
    this.#path = path
    this.#call = call
  }

  /** The page behind a cursor, or the first one. */
  async page(cursor?: string): Promise<Page<Item>> {
    const query = { ...this.#call.query, cursor }
    const answer = await this.#transport.json<Page<Item>>('GET', this.#path, { ...this.#call, query })
    // An answer has one list, whose name is that of its items.
    return { ...answer, items: Object.values(answer).find(Array.isArray) as Item[] }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: Page<Item> = await this.page(cursor)
      yield* page.items
      cursor = page.next_cursor
    }
  }

  /** All items, up to this many. */
  async all(most = Number.POSITIVE_INFINITY): Promise<Item[]> {
    const items: Item[] = []
    if (most > 0) for await (const item of this) if (items.push(item) >= most) break
    return items
  }
}

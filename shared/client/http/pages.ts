import type { CallOptions, Query, Transport } from './transport.ts'

export type Page<Item> = { items: Item[]; next_cursor: string | null; incomplete?: boolean }

type Listing = {
  transport: Transport
  path: string
  /** The field of the answer that holds the items. */
  field: string
  query?: Query | undefined
  options?: CallOptions | undefined
}

/** A list of the API: iterate over all its items, or read one page. */
export class Pages<Item> implements AsyncIterable<Item> {
  readonly #listing: Listing

  constructor(listing: Listing) {
    this.#listing = listing
  }

  /** The page behind a cursor, or the first one. */
  async page(cursor?: string): Promise<Page<Item>> {
    const { transport, path, field, query, options } = this.#listing
    const call = { method: 'GET', path, query: { ...query, ...(cursor !== undefined && { cursor }) }, ...options }
    const { [field]: items, ...rest } = await transport.json<Record<string, unknown>>(call)
    return { ...(rest as Omit<Page<Item>, 'items'>), items: items as Item[] }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let cursor: string | undefined
    do {
      const { items, next_cursor } = await this.page(cursor)
      yield* items
      cursor = next_cursor ?? undefined
    } while (cursor !== undefined)
  }

  /** All items, up to this many. */
  async all(most = Number.POSITIVE_INFINITY): Promise<Item[]> {
    const items: Item[] = []
    for await (const item of this) {
      if (items.length >= most) break
      items.push(item)
    }
    return items
  }
}

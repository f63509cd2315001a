import { wrongAnswer } from '../errors.ts'
import { path as at } from './request.ts'
import type { CallOptions, Query, Transport } from './transport.ts'

export type Page<Item> = { items: Item[]; next_cursor: string | null; incomplete?: boolean }

/** A list of the API: iterate over all its items, or read one page. */
export type Pages<Item> = AsyncIterable<Item> & {
  /** The page after a cursor, or the first one. */
  page(cursor?: string): Promise<Page<Item>>
  /** All items, up to this many. */
  all(most?: number): Promise<Item[]>
}

/** Lists the items of a path. */
export type ListPages<Item> = (query?: Query, options?: CallOptions) => Pages<Item>

/** Reads the items of a path: one by its id or name (`has` is a field that every item has), and in lists. */
export const createReads = <One, Listed>(transport: Transport, path: string, has: string) => ({
  get: (id: string, options?: CallOptions): Promise<One> =>
    transport.json('GET', path + at`/${id}`, { ...options, has }),

  list: pages<Listed>(transport, path),
})

export const pages =
  <Item>(transport: Transport, path: string): ListPages<Item> =>
  (query, options) => {
    const page = async (cursor?: string): Promise<Page<Item>> => {
      const answer = await transport.json<Page<Item>>('GET', path, { ...options, query: { ...query, cursor } })
      // The first list in an answer contains its items.
      const listed: Item[] | undefined = Object.values(answer ?? {}).find(Array.isArray)
      return { ...answer, items: listed ?? wrongAnswer(answer) }
    }
    async function* items(): AsyncGenerator<Item, void, undefined> {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const { items: some, next_cursor }: Page<Item> = await page(cursor)
        yield* some
        cursor = next_cursor
      }
    }
    const all = async (most = Number.POSITIVE_INFINITY): Promise<Item[]> => {
      const found: Item[] = []
      if (most > 0) for await (const item of items()) if (found.push(item) >= most) break
      return found
    }
    return { page, all, [Symbol.asyncIterator]: items }
  }

export type Reads<One, Listed> = {
  get(id: string, options?: CallOptions): Promise<One>
  list: ListPages<Listed>
}

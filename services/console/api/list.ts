import type { Query } from '../../../shared/client/http/transport.ts'
import { tellFailure } from '../base/announce.ts'
import { get, pace } from './engine.ts'
import { type Concerns, LiveResource, type Resource, useResource } from './resource.ts'

/** Entries of the first page, and of those that somebody asks for. */
const FIRST = 50
const MORE = 100
/** The number of entries per request when a long list is read again, and the most entries that are read again. */
const AGAIN = 200
const MOST_AGAIN = 1_000

export type Listing = {
  path: string
  /** The field of the answer that holds the items. */
  field: string
  query?: Query
  concerns?: Concerns
}

type Pages<Item> = { items: readonly Item[]; next: string | undefined; isIncomplete: boolean }

export type List<Item> = Resource<Pages<Item>> & { more(): Promise<void> }

/** A list of the API, page by page. While more than one page is shown, events no longer change the list. */
export function useList<Item>({ path, field, query = {}, concerns }: Listing): List<Item> {
  const read = async (limit: number, cursor?: string): Promise<Pages<Item>> => {
    const answer = await get<Record<string, unknown>>(path, { limit, ...query, cursor })
    const next = (answer['next_cursor'] as string | null) ?? undefined
    return { items: answer[field] as Item[], next, isIncomplete: answer['incomplete'] === true }
  }
  const shown = (): readonly Item[] => resource.state.peek().data?.items ?? []
  const isLong = () => shown().length > Number(query['limit'] ?? FIRST)
  const resource: LiveResource<Pages<Item>> = useResource(
    `${path}?${JSON.stringify(query)}`,
    () => readAgain(read, shown().length),
    (event) => !isLong() && (concerns?.(event) ?? false),
  )
  return { state: resource.state, reload: resource.reload, more: () => addPage(resource, read) }
}

type Read<Item> = (limit: number, cursor?: string) => Promise<Pages<Item>>

/** Reads the first page, and as many more as there are entries shown. */
async function readAgain<Item>(read: Read<Item>, count: number): Promise<Pages<Item>> {
  let all = await read(FIRST)
  while (all.next !== undefined && all.items.length < Math.min(count, MOST_AGAIN)) {
    pace().more()
    all = joined(all, await read(AGAIN, all.next))
  }
  return all
}

const joined = <Item>(all: Pages<Item>, page: Pages<Item>): Pages<Item> => ({
  ...page,
  items: [...all.items, ...page.items],
})

async function addPage<Item>(resource: LiveResource<Pages<Item>>, read: Read<Item>): Promise<void> {
  const { data } = resource.state.peek()
  if (data?.next === undefined) return
  await read(MORE, data.next).then((page) => resource.set(joined(data, page)), tellFailure)
}

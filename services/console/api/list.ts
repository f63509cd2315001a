import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { Query } from '../../../shared/client/http/transport.ts'
import { tellFailure } from '../base/announce.ts'
import { get } from './engine.ts'
import { type Concerns, LiveResource, type Resource, useResource } from './resource.ts'

/** Entries of the first page, and of those that somebody asks for. */
const FIRST = 50
const MORE = 100

export type Listing = {
  path: string
  /** The field of the answer that holds the items. */
  field: string
  query?: Query
  concerns?: Concerns
}

type Pages<Item> = { items: readonly Item[]; next: string | undefined; isIncomplete: boolean }

export type List<Item> = Resource<Pages<Item>> & { more(): Promise<void> }

/** A list of the API, page by page. With more than one page shown, events no longer change it below the reader's eyes. */
export function useList<Item>({ path, field, query = {}, concerns }: Listing): List<Item> {
  const key = `${path}?${JSON.stringify(query)}`
  const hasMore = useSignal(false)
  useMemo(() => (hasMore.value = false), [key])
  const read = async (cursor?: string): Promise<Pages<Item>> => {
    const answer = await get<Record<string, unknown>>(path, {
      limit: cursor === undefined ? FIRST : MORE,
      ...query,
      cursor,
    })
    const next = (answer['next_cursor'] as string | null) ?? undefined
    return { items: answer[field] as Item[], next, isIncomplete: answer['incomplete'] === true }
  }
  const resource = useResource(
    key,
    () => read(),
    (event) => !hasMore.peek() && (concerns?.(event) ?? false),
  )
  return {
    state: resource.state,
    reload: resource.reload,
    more: () => addPage(resource, read, () => (hasMore.value = true)),
  }
}

async function addPage<Item>(
  resource: LiveResource<Pages<Item>>,
  read: (cursor?: string) => Promise<Pages<Item>>,
  onMore: () => void,
): Promise<void> {
  const { data } = resource.state.peek()
  if (data?.next === undefined) return
  onMore()
  await read(data.next).then((page) => resource.set({ ...page, items: [...data.items, ...page.items] }), tellFailure)
}

import { decodeCursor, encodeCursor, invalidCursor, type PageRequest } from '../kernel/cursor.ts'

/** A position in a list: the start, then the id, so a page may end between two items of the same millisecond. */
export type ListPosition = { startedMs: number; id: string }

/** Returns the page that `cursor` selects, newest first, and the cursor of the next page or `null`. Throws `invalid_request`. */
export function pageOf<T>(
  all: readonly T[],
  positionOf: (each: T) => ListPosition,
  { limit, cursor, idPattern = RUN_ID }: PageRequest & { idPattern?: RegExp },
): { page: T[]; next: string | null } {
  const before = cursor === undefined ? undefined : readCursor(cursor, idPattern)
  const sorted = all
    .map((each) => ({ each, position: positionOf(each) }))
    .filter(({ position }) => before === undefined || compare(position, before) < 0)
    .sort((a, b) => compare(b.position, a.position))
  const last = sorted[limit - 1]?.position
  return {
    page: sorted.slice(0, limit).map(({ each }) => each),
    next: last && sorted.length > limit ? writeCursor(last) : null,
  }
}

type Merging<T, P> = { limit: number; itemsOf(page: P): readonly T[]; positionOf(each: T): ListPosition }

/**
 * Merges the pages of several workers, all read with the same cursor and limit, into one page, which is incomplete when one of them is. An item that
 * is being handed over may be in two of them.
 */
export function mergePages<T, P extends { next_cursor: string | null; incomplete?: true }>(
  pages: readonly P[],
  { limit, itemsOf, positionOf }: Merging<T, P>,
): { page: T[]; rest: { next_cursor: string | null; incomplete?: true } } {
  const all = new Map(pages.flatMap(itemsOf).map((each) => [positionOf(each).id, each]))
  const { page, next } = pageOf([...all.values()], positionOf, { limit })
  const last = page.at(-1)
  const hasMore = last && pages.some(({ next_cursor }) => next_cursor !== null)
  const isIncomplete = pages.some(({ incomplete }) => incomplete)
  return {
    page,
    rest: { next_cursor: hasMore ? writeCursor(positionOf(last)) : next, ...(isIncomplete && { incomplete: true }) },
  }
}

const compare = (a: ListPosition, b: ListPosition): number => a.startedMs - b.startedMs || (a.id < b.id ? -1 : 1)

export const writeCursor = ({ startedMs, id }: ListPosition): string =>
  encodeCursor([new Date(startedMs).toISOString(), id])

/** Throws `invalid_request` for a cursor of another list. */
export function readCursor(cursor: string, idPattern: RegExp): ListPosition {
  const [startedAt, id] = decodeCursor(cursor, ['string', 'string'])
  const startedMs = Date.parse(startedAt)
  if (Number.isNaN(startedMs) || !idPattern.test(id)) throw invalidCursor()
  return { startedMs, id }
}

const RUN_ID = /^run_[0-9a-f]{32}$/

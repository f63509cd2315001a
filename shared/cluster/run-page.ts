import { decodeCursor, encodeCursor, invalidCursor } from '../kernel/cursor.ts'
import type { PageRequest, RunPage, RunSummary } from './port.ts'

/** A position in a list of runs: the start, then the id, so a page may end between two runs of the same millisecond. */
export type Position = { startedMs: number; id: string }

/** Returns the page that `cursor` selects, newest first, and the cursor of the next page or `null`. Throws `invalid_request`. */
export function pageOf<T>(
  all: readonly T[],
  positionOf: (each: T) => Position,
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

/** Merges the pages of several workers, all read with the same cursor and limit, into one page. It is incomplete when one of them is. */
export function mergePages(pages: readonly RunPage[], limit: number): RunPage {
  const all = pages.flatMap(({ runs }) => runs)
  const { page: runs, next } = pageOf(all, positionOf, { limit })
  const last = runs.at(-1)
  const hasMore = last && pages.some(({ next_cursor }) => next_cursor !== null)
  const isIncomplete = pages.some(({ incomplete }) => incomplete)
  return {
    runs,
    next_cursor: hasMore ? writeCursor(positionOf(last)) : next,
    ...(isIncomplete && { incomplete: true }),
  }
}

const positionOf = ({ started_at, run_id }: RunSummary): Position => ({ startedMs: Date.parse(started_at), id: run_id })

const compare = (a: Position, b: Position): number =>
  a.startedMs - b.startedMs || (a.id < b.id ? -1 : Number(a.id > b.id))

export const writeCursor = ({ startedMs, id }: Position): string =>
  encodeCursor([new Date(startedMs).toISOString(), id])

function readCursor(cursor: string, idPattern: RegExp): Position {
  const [startedAt, id] = decodeCursor(cursor, ['string', 'string'])
  const startedMs = Date.parse(startedAt)
  if (Number.isNaN(startedMs) || !idPattern.test(id)) throw invalidCursor()
  return { startedMs, id }
}

const RUN_ID = /^run_[0-9a-f]{32}$/

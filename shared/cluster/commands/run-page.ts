import { type ListPosition, pageOf, writeCursor } from '../list-page.ts'
import type { RunPage, RunSummary } from './runs.ts'

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

const positionOf = ({ started_at, run_id }: RunSummary): ListPosition => ({
  startedMs: Date.parse(started_at),
  id: run_id,
})

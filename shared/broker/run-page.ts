import { invalidRequest } from '../errors.ts'
import type { RunFilter, RunPage, RunSummary } from './port.ts'

/** Where a run stands in the list; the id breaks ties, so that a page never ends between two runs of one millisecond. */
type Place = { startedMs: number; id: string }

/** The page that `cursor` asks for, newest first, and the cursor of the next one, if there is more. */
export function pageOf<T>(
  all: readonly T[],
  placeOf: (each: T) => Place,
  { limit, cursor }: Pick<RunFilter, 'limit' | 'cursor'>,
): { page: T[]; next: string | null } {
  const before = cursor === undefined ? undefined : readCursor(cursor)
  const sorted = all
    .map((each) => ({ each, place: placeOf(each) }))
    .filter(({ place }) => before === undefined || compare(place, before) < 0)
    .sort((a, b) => compare(b.place, a.place))
  const last = sorted[limit - 1]?.place
  return {
    page: sorted.slice(0, limit).map(({ each }) => each),
    next: last && sorted.length > limit ? cursorAt(last) : null,
  }
}

/** One page of what several workers have, each of which has given its own page after the same cursor. */
export function mergePages(pages: readonly RunPage[], limit: number): RunPage {
  const all = pages.flatMap(({ runs }) => runs)
  const { page: runs, next } = pageOf(all, placeOf, { limit })
  const last = runs.at(-1)
  const hasMore = last && pages.some(({ next_cursor }) => next_cursor !== null)
  return { runs, next_cursor: hasMore ? cursorAt(placeOf(last)) : next }
}

const placeOf = ({ started_at, run_id }: RunSummary): Place => ({ startedMs: Date.parse(started_at), id: run_id })

const cursorAt = ({ startedMs, id }: Place): string =>
  Buffer.from(`${new Date(startedMs).toISOString()} ${id}`).toString('base64url')

const compare = (a: Place, b: Place): number => a.startedMs - b.startedMs || (a.id < b.id ? -1 : Number(a.id > b.id))

function readCursor(cursor: string): Place {
  const [, at = '', id = ''] =
    /^(\d{4}-[\d:.TZ-]+) (run_[0-9a-f]{32})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  const startedMs = Date.parse(at)
  if (!Number.isNaN(startedMs)) return { startedMs, id }
  throw invalidRequest('cursor is not one that a list has given; leave it out to begin at the newest', {
    param: '/cursor',
  })
}

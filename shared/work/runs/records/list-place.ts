import type { RunFilter } from '../../../cluster/commands/runs.ts'
import { decodeCursor, encodeCursor, invalidCursor } from '../../../kernel/cursor.ts'
import type { RecordPosition } from './store.ts'

/** The list of runs has three parts: the runs that continue, those that have ended and are not recorded, and the records. */
export type Place =
  | { part: KnownPart; cursor: string | undefined }
  | { part: 'records'; after: RecordPosition | undefined }
export type KnownPart = NonNullable<RunFilter['among']>

/** The cursor of the page that begins behind a place. `listed` names runs of the pages before it. */
export const writePlace = (place: Place, listed: string): string =>
  place.part === 'records'
    ? encodeCursor([place.part, ...(place.after ?? []), listed])
    : encodeCursor([place.part, place.cursor ?? '', listed])

/** Throws `invalid_request` for a cursor that no list has returned. */
export function readPlace(cursor: string | undefined): { place: Place; listed: string } {
  if (cursor === undefined) return { place: { part: 'live', cursor: undefined }, listed: '' }
  try {
    const [part, known, listed] = decodeCursor(cursor, ['string', 'string', 'string'])
    if (part === 'live' || part === 'unrecorded') return { place: { part, cursor: known }, listed }
  } catch {
    const [part, startedAt, runId, listed] = decodeCursor(cursor, ['string', 'string', 'string', 'string'])
    if (part === 'records') return { place: { part, after: [startedAt, runId] }, listed }
  }
  throw invalidCursor()
}

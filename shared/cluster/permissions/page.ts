import { decodeCursor, encodeCursor, invalidCursor } from '../../kernel/cursor.ts'

/** A page ends before its limit when its requests would be larger than this together: the inputs of tools can be large. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** The cursor of a page that ends at this place: a whole number that rises with every request of the tenant. */
export const writePlace = (place: number): string => encodeCursor([place])

/** Throws `invalid_request` for a cursor that no list has returned. */
export function readPlace(cursor: string): number {
  const [place] = decodeCursor(cursor, ['number'])
  if (Number.isSafeInteger(place) && place > 0) return place
  throw invalidCursor()
}

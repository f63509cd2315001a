import { invalidRequest } from '../../errors.ts'

/** A page ends before its limit when what the tools are to be given is more than this: inputs can be large. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** Where a request stands in its tenant's list: a whole number that rises with every request. */
export const writePlace = (place: number | string): string => Buffer.from(`p${place}`).toString('base64url')

export function readPlace(cursor: string): number {
  const [, place] = /^p(\d{1,16})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (place !== undefined) return Number(place)
  throw invalidRequest('cursor is not one that a list has given; leave it out to begin at the oldest', {
    param: '/cursor',
  })
}

import { type AppError, invalidRequest } from './errors.ts'
import { parseJson } from './json.ts'

export type CursorValue = string | number

/** Encodes a position in a list as the opaque `cursor` of D2.7: the sort values of the last item that the client has. */
export const encodeCursor = (values: readonly CursorValue[]): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url')

/** Throws `invalid_request` unless the cursor holds values of these types, in this order; numbers are finite. */
export function decodeCursor(cursor: string, types: readonly ('string' | 'number')[]): CursorValue[] {
  const values = parseJson(Buffer.from(cursor, 'base64url').toString())
  if (Array.isArray(values) && values.length === types.length && values.every((each, i) => isOf(types[i], each))) {
    return values as CursorValue[]
  }
  throw invalidCursor()
}

/** The error for a cursor that no list has returned. */
export const invalidCursor = (): AppError =>
  invalidRequest('cursor must be one that this list returned; leave it out to start from the beginning', {
    param: '/cursor',
  })

const isOf = (type: 'string' | 'number' | undefined, value: unknown): boolean =>
  typeof value === type && (typeof value !== 'number' || Number.isFinite(value))

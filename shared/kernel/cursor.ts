import { type AppError, invalidRequest } from './errors.ts'
import { parseJson } from './json.ts'

/** Selects one page of a list (D2.7). */
export type PageRequest = { limit: number; cursor?: string }

export type CursorValue = string | number

type ValueType = 'string' | 'number'
type Values<T> = { -readonly [Index in keyof T]: T[Index] extends 'number' ? number : string }

/** Encodes a position in a list as the opaque `cursor` of D2.7: the sort values of the last item that the client has. */
export const encodeCursor = (values: readonly CursorValue[]): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url')

/** Throws `invalid_request` unless the cursor holds values of these types, in this order; numbers are finite. */
export function decodeCursor<const T extends readonly ValueType[]>(cursor: string, types: T): Values<T> {
  const values = parseJson(Buffer.from(cursor, 'base64url').toString())
  if (Array.isArray(values) && values.length === types.length && values.every((each, i) => isOf(types[i], each))) {
    return values as Values<T>
  }
  throw invalidCursor()
}

/** The position after which a page begins; `undefined` for the first page. Throws as `decodeCursor` does. */
export const startOfPage = <const T extends readonly ValueType[]>(
  cursor: string | undefined,
  types: T,
): Values<T> | undefined => (cursor === undefined ? undefined : decodeCursor(cursor, types))

/** Makes a page from the found items: `limit` items, or one more when another page follows. */
export function toPage<T>(
  found: readonly T[],
  limit: number,
  cursorOf: (last: T) => readonly CursorValue[],
): { page: T[]; next_cursor: string | null } {
  const page = found.slice(0, limit)
  const last = found.length > limit ? page.at(-1) : undefined
  return { page, next_cursor: last === undefined ? null : encodeCursor(cursorOf(last)) }
}

/** The error for a cursor that no list has returned. */
export const invalidCursor = (): AppError =>
  invalidRequest('cursor must be one that this list returned; leave it out to start from the beginning', {
    param: '/cursor',
  })

const isOf = (type: ValueType | undefined, value: unknown): boolean =>
  typeof value === type && (typeof value !== 'number' || Number.isFinite(value))

import { invalidRequest } from '../errors.ts'
import type { Scalar } from './port.ts'

/** A place in a list as its client carries it (D2.7): the values that the page behind it begins after. */
export const toCursor = (values: readonly Scalar[]): string => Buffer.from(JSON.stringify(values)).toString('base64url')

/** Throws `invalid_request` unless the cursor holds values of these types, in this order. */
export function readCursor(cursor: string, types: readonly ('string' | 'number')[]): Scalar[] {
  const values = parse(Buffer.from(cursor, 'base64url').toString())
  const fits =
    Array.isArray(values) && values.length === types.length && types.every((type, i) => typeof values[i] === type)
  if (fits) return values as Scalar[]
  throw invalidRequest('cursor is none that a list has given: leave it out to begin anew', { param: '/cursor' })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

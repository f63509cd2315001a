import { AppError, invalidRequest } from '../errors.ts'
import type { JsonObject } from '../events.ts'
import type { CollectionSpec, Fields, PageQuery, Scalar } from './port.ts'

/** Below MongoDB's limit of 16 MiB. */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_PAGE = 1000
const NAME = /^[a-z][a-z0-9_]{0,62}$/
/** Columns and fields that the adapters add to a document's own. */
const RESERVED = new Set(['tenant', 'doc', 'version', 'expires_at', 'rowid', 'oid'])

/** Every field that a collection looks up or orders by. */
export function fieldsOf({ key, unique = [], order, filters = [] }: CollectionSpec): string[] {
  return [...new Set([...key, ...unique.flat(), ...(order?.within ?? []), ...(order?.by ?? []), ...filters])]
}

export type Index = { name: string; fields: readonly string[]; isUnique: boolean }

/** The indexes a collection needs, each group of fields once; the tenant is before all of them. */
export function indexesOf({ key, unique = [], order }: CollectionSpec): Index[] {
  const indexes = [key, ...unique].map((fields) => ({ name: `by_${fields.join('_')}`, fields, isUnique: true }))
  const paged = order && [...order.within, ...order.by]
  if (paged && !indexes.some(({ name }) => name === `by_${paged.join('_')}`))
    indexes.push({ name: `by_${paged.join('_')}`, fields: paged, isUnique: false })
  return indexes
}

/** Throws for a collection whose names could mean something else to a database. */
export function checkSpec(spec: CollectionSpec): void {
  for (const name of [spec.name, ...fieldsOf(spec)])
    if (!NAME.test(name) || RESERVED.has(name)) throw new Error(`${spec.name}: ${name} cannot be the name of a field`)
}

/** The document as it is kept: text, so that no database reads anything into its keys. */
export function toText(spec: CollectionSpec, doc: JsonObject): string {
  for (const field of fieldsOf(spec)) checkScalar(spec, field, doc[field])
  const text = JSON.stringify(doc)
  if (Buffer.byteLength(text) <= MAX_BYTES) return text
  throw new AppError('invalid_request', `more than ${MAX_BYTES} bytes cannot be stored: send less`, { status: 413 })
}

/** Picks the values of `names` from `fields`. Throws when there are others or one is missing. */
export function pick(spec: CollectionSpec, names: readonly string[], fields: Fields): Scalar[] {
  if (Object.keys(fields).some((field) => !names.includes(field)))
    throw new Error(`${spec.name} is not looked up by ${Object.keys(fields).join(', ')}`)
  return names.map((name) => checkScalar(spec, name, fields[name]))
}

/** The group of fields, of the key or a unique one, that `fields` are the values of. */
export function groupOf(spec: CollectionSpec, fields: Fields): readonly string[] {
  const given = Object.keys(fields)
  const group = [spec.key, ...(spec.unique ?? [])].find(
    (names) => names.length === given.length && names.every((name) => given.includes(name)),
  )
  if (!group) throw new Error(`${spec.name} is not looked up by ${given.join(', ')}`)
  return group
}

export type Bound = { names: readonly string[]; values: readonly Scalar[]; isLower: boolean; isInclusive: boolean }
export type CheckedQuery = {
  where: readonly (readonly [string, Scalar])[]
  bounds: Bound[]
  by: readonly string[]
  isDescending: boolean
  limit: number
}

/** A page's query against what the collection declares; what does not fit is a bug and throws. */
export function checkQuery(spec: CollectionSpec, { where = {}, after, until, limit }: PageQuery): CheckedQuery {
  const { order, filters = [] } = spec
  if (!order) throw new Error(`${spec.name} is not paged`)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) throw new Error(`a page of ${limit}`)
  const names = [...order.within, ...filters.filter((name) => Object.hasOwn(where, name))]
  const values = pick(spec, names, where)
  const isDescending = order.direction === 'descending'
  const bound = (limits: readonly Scalar[] | undefined, isEnd: boolean): Bound[] => {
    if (!limits) return []
    const bounded = order.by.slice(0, limits.length)
    if (limits.length === 0 || limits.length > order.by.length)
      throw new Error(`${spec.name} is ordered by ${order.by.join(', ')}`)
    for (const [i, value] of limits.entries()) checkScalar(spec, bounded[i] ?? '', value)
    return [{ names: bounded, values: limits, isLower: isEnd === isDescending, isInclusive: isEnd }]
  }
  return {
    where: names.map((name, i) => [name, values[i] ?? ''] as const),
    bounds: [...bound(after, false), ...bound(until, true)],
    by: order.by,
    isDescending,
    limit,
  }
}

/** Databases differ in what they make of half a character or a NUL, and two ids would become one. */
function checkScalar({ name }: CollectionSpec, field: string, value: unknown): Scalar {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value !== 'string') throw new Error(`${name}.${field} is neither a string nor a number`)
  if (value.isWellFormed() && !value.includes('\0')) return value
  throw invalidRequest(`${field} holds a character that is none: send it as valid Unicode without NUL`)
}

/** One of the collections that a store was opened with. */
export function openedAs<C>(name: string, opened: ReadonlyMap<string, C>): C {
  const collection = opened.get(name)
  if (!collection) throw new Error(`the store was not opened with ${name}`)
  return collection
}

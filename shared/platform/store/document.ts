import { AppError, invalidRequest } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { CollectionSpec, Fields, FieldUpdate, PageQuery, Scalar } from './port.ts'

/** The longest document, as JSON in UTF-8. Below MongoDB's limit of 16 MiB. */
export const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024
const MAX_PAGE = 1000
const NAME = /^[a-z][a-z0-9_]{0,62}$/
/** Columns and fields that the adapters add to those of a document. */
const RESERVED = new Set(['tenant', 'doc', 'version', 'expires_at', 'body', 'rowid', 'oid'])

/** The indexed fields of each collection, kept because every document is checked for them. */
const INDEXED = new WeakMap<CollectionSpec, readonly string[]>()

/** Every field that a collection looks up, filters or orders by. */
export function indexedFields(spec: CollectionSpec): readonly string[] {
  const known = INDEXED.get(spec)
  if (known) return known
  const { key, unique = [], order, filters, total } = spec
  const ordered = [...(order?.within ?? []), ...(order?.by ?? []), ...(filters ?? [])]
  const fields = [...new Set([...key, ...unique.flat(), ...ordered, ...(total ? totalFields(total) : [])])]
  INDEXED.set(spec, fields)
  return fields
}

export type Index = { name: string; fields: readonly string[]; isUnique: boolean }

/**
 * The indexes that a collection needs: for the key, for each unique group, for its total, and for its pages under each selection of
 * filters. The adapters add the tenant before the fields.
 */
export function indexesOf({ key, unique = [], order, filters, total }: CollectionSpec): Index[] {
  const indexes = [key, ...unique].map((fields) => ({ name: indexName(fields), fields, isUnique: true }))
  if (total) indexes.push({ name: indexName(totalFields(total)), fields: totalFields(total), isUnique: false })
  if (!order) return indexes
  for (const selection of selectionsOf(filters ?? [])) {
    const fields = [...order.within, ...selection, ...order.by]
    const name = indexName(fields)
    if (!indexes.some((index) => index.name === name)) indexes.push({ name, fields, isUnique: false })
  }
  return indexes
}

/** The number comes last, so that the index alone answers the query. */
const totalFields = ({ within, of }: NonNullable<CollectionSpec['total']>): string[] => [...within, of]

const indexName = (fields: readonly string[]): string => `by_${fields.join('_')}`

/** Every way to choose some of the filters, from none to all. */
const selectionsOf = (filters: readonly string[]): string[][] =>
  filters.reduce<string[][]>((chosen, filter) => [...chosen, ...chosen.map((each) => [...each, filter])], [[]])

/** Throws when a database could misread a name, and when a collection declares two expiries. */
export function assertValidSpec(spec: CollectionSpec): void {
  for (const name of [spec.name, ...indexedFields(spec)])
    if (!NAME.test(name) || RESERVED.has(name)) throw new Error(`${spec.name}: ${name} is not allowed as a name`)
  if (spec.ttlSecs !== undefined && spec.expiresBy !== undefined)
    throw new Error(`${spec.name}: give either ttlSecs or expiresBy`)
  if (spec.total && canExpire(spec)) throw new Error(`${spec.name}: documents that expire have no total`)
}

export const canExpire = ({ ttlSecs, expiresBy }: CollectionSpec): boolean =>
  ttlSecs !== undefined || expiresBy !== undefined

/** When a new document expires, in milliseconds since 1970; `undefined` when it never does. */
export function expiryOf(spec: CollectionSpec, doc: JsonObject, nowMs: number): number | undefined {
  return spec.ttlSecs === undefined ? ownExpiryOf(spec, doc) : nowMs + 1000 * spec.ttlSecs
}

/** The expiry in the document itself, in collections with `expiresBy`. */
export function ownExpiryOf({ name, expiresBy }: CollectionSpec, doc: JsonObject): number | undefined {
  if (expiresBy === undefined) return undefined
  const expiresMs = doc[expiresBy]
  if (typeof expiresMs === 'number' && Number.isFinite(expiresMs)) return Math.trunc(expiresMs)
  throw new Error(`${name}.${expiresBy} is not a number of milliseconds`)
}

/** The document as the text that is stored: a database never interprets the keys of a document. Throws 413 above 8 MiB. */
export function serializeDocument(spec: CollectionSpec, doc: JsonObject, text = JSON.stringify(doc)): string {
  for (const field of indexedFields(spec)) checkScalar(spec, field, doc[field])
  return checkLength(text)
}

/** The body of a document. Throws 413 above 8 MiB. */
export function checkBody(spec: CollectionSpec, body: string): string {
  if (!spec.hasBody) throw new Error(`${spec.name}: documents have no body`)
  return checkLength(body)
}

/** A character takes at most three bytes, so hardly any text must be counted. */
function checkLength(text: string): string {
  if (3 * text.length <= MAX_DOCUMENT_BYTES || Buffer.byteLength(text) <= MAX_DOCUMENT_BYTES) return text
  throw new AppError('invalid_request', `more than ${MAX_DOCUMENT_BYTES} bytes cannot be stored: send less`, {
    status: 413,
  })
}

/** The values of `names` in `fields`, in that order. Throws when one is missing or `fields` holds others. */
export function pickValues(spec: CollectionSpec, names: readonly string[], fields: Fields): Scalar[] {
  if (Object.keys(fields).some((field) => !names.includes(field)))
    throw new Error(`${spec.name} cannot be looked up by ${Object.keys(fields).join(', ')}`)
  return names.map((name) => checkScalar(spec, name, fields[name]))
}

/** The values of the key in `doc`, in the key's order. */
export function keyValues(spec: CollectionSpec, doc: JsonObject): Scalar[] {
  return spec.key.map((name) => checkScalar(spec, name, doc[name]))
}

/**
 * The parts of an update, and the indexed ones of the fields that it sets. An update that does not fit the collection's
 * declaration is a bug and throws.
 */
export function checkUpdate(spec: CollectionSpec, { key, where, set }: FieldUpdate) {
  const fixed = new Set([...spec.key, ...(spec.unique ?? []).flat(), spec.expiresBy])
  const changed = Object.keys(set)
  const wrong = changed.find((field) => fixed.has(field))
  if (wrong !== undefined || changed.length === 0) throw new Error(`${spec.name}: ${wrong ?? 'nothing'} cannot be set`)
  const indexed = indexedFields(spec)
  return {
    key: pickValues(spec, spec.key, key),
    where: Object.entries(where).map(([field, value]) => {
      if (!indexed.includes(field)) throw new Error(`${spec.name} cannot be looked up by ${field}`)
      return [field, checkScalar(spec, field, value)] as const
    }),
    indexed: changed
      .filter((field) => indexed.includes(field))
      .map((field) => [field, checkScalar(spec, field, set[field])] as const),
  }
}

/** The key or the `unique` group that consists of exactly these fields. */
export function uniqueGroupOf(spec: CollectionSpec, fields: Fields): readonly string[] {
  const given = Object.keys(fields)
  const group = [spec.key, ...(spec.unique ?? [])].find(
    (names) => names.length === given.length && names.every((name) => given.includes(name)),
  )
  if (!group) throw new Error(`${spec.name} cannot be looked up by ${given.join(', ')}`)
  return group
}

export type Bound = { names: readonly string[]; values: readonly Scalar[]; isLower: boolean; isInclusive: boolean }
export type CheckedQuery = {
  /** Name of the index that holds exactly the documents of `where`, in the page's order. */
  index: string
  where: readonly (readonly [string, Scalar])[]
  bounds: Bound[]
  by: readonly string[]
  isDescending: boolean
  limit: number
}

/** Checks a page's query against the collection's declaration. A query that does not fit is a bug and throws. */
export function checkQuery(spec: CollectionSpec, { where = {}, after, until, limit }: PageQuery): CheckedQuery {
  const { order, filters = [] } = spec
  if (!order) throw new Error(`${spec.name} has no order and cannot be paged`)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    throw new Error(`a page of ${limit} documents: the limit is 1 to ${MAX_PAGE}`)
  const names = [...order.within, ...filters.filter((name) => Object.hasOwn(where, name))]
  const values = pickValues(spec, names, where)
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
    index: indexName([...names, ...order.by]),
    where: names.map((name, i) => [name, values[i] ?? ''] as const),
    bounds: [...bound(after, false), ...bound(until, true)],
    by: order.by,
    isDescending,
    limit,
  }
}

/** Checks the query for a filter's next value, and returns the name of the index that begins with this filter. A query that does not fit is a bug and throws. */
export function checkNextValue({ name, order, filters }: CollectionSpec, filter: string): string {
  if (!order || order.within.length > 0 || filters?.[0] !== filter) throw new Error(`${name} has no order by ${filter}`)
  return indexName([filter, ...order.by])
}

export type CheckedTotal = { index: string; where: readonly (readonly [string, Scalar])[]; of: string }

/** Checks the query of a total against the collection's declaration. A query that does not fit is a bug and throws. */
export function checkTotal(spec: CollectionSpec, where: Fields): CheckedTotal {
  if (!spec.total) throw new Error(`${spec.name} has no total`)
  const { within, of } = spec.total
  const values = pickValues(spec, within, where)
  return { index: indexName(totalFields(spec.total)), where: within.map((name, i) => [name, values[i] ?? '']), of }
}

/** Databases treat unpaired surrogates and NUL differently; two ids could become one. Both are refused. */
function checkScalar({ name }: CollectionSpec, field: string, value: unknown): Scalar {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value !== 'string') throw new Error(`${name}.${field} is neither a string nor a number`)
  if (value.isWellFormed() && !value.includes('\0')) return value
  throw invalidRequest(`${field} holds an invalid character: send valid Unicode without NUL`)
}

/** The collection of this name; throws when the store was not opened with it. */
export function requireCollection<C>(name: string, opened: ReadonlyMap<string, C>): C {
  const collection = opened.get(name)
  if (!collection) throw new Error(`the store was not opened with ${name}`)
  return collection
}

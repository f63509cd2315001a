import type { Db, Collection as DriverCollection, Filter } from 'mongodb'
import type { JsonObject } from '../../events.ts'
import type { TenantId } from '../../tenant.ts'
import { type Bound, checkQuery, fieldsOf, groupOf, pick, toText } from '../document.ts'
import type { Collection, CollectionSpec, Fields, PageQuery, Scalar, Stored, WriteOptions } from '../port.ts'
import { type Gate, isDuplicate } from './guard.ts'

/** As it lies in MongoDB: what is looked up, and the document as text, whose keys are nothing to a query. */
type Row = { tenant: string; version: number; doc: string; expires_at?: Date; [field: string]: unknown }

type Parts = { db: Db; gate: Gate; now: () => number }

const READ_MS = 2_000

/** One collection. Every value in a filter is compared with `$eq` (or a bound), as the string or number that it is. */
export class MongoCollection implements Collection {
  readonly #spec: CollectionSpec
  readonly #rows: DriverCollection<Row>
  readonly #gate: Gate
  readonly #now: () => number

  constructor(spec: CollectionSpec, { db, gate, now }: Parts) {
    this.#spec = spec
    this.#rows = db.collection<Row>(spec.name)
    this.#gate = gate
    this.#now = now
  }

  async get(tenant: TenantId, fields: Fields): Promise<Stored | undefined> {
    const group = groupOf(this.#spec, fields)
    const filter = this.#alive(tenant, group, pick(this.#spec, group, fields))
    const row = await this.#gate((signal) =>
      this.#rows.findOne(filter, { signal, maxTimeMS: READ_MS, projection: STORED }),
    )
    return row ? toStored(row) : undefined
  }

  async insert(tenant: TenantId, doc: JsonObject, { withinMs }: WriteOptions = {}): Promise<boolean> {
    const { ttlSecs } = this.#spec
    const row: Row = { tenant, version: 1, doc: toText(this.#spec, doc), ...this.#fieldsOf(doc) }
    if (ttlSecs !== undefined) row.expires_at = new Date(this.#now() + 1000 * ttlSecs)
    // The driver adds an _id to what it is given, and a second insert of that would be a duplicate of the first.
    const put = () =>
      unlessTaken(this.#gate((signal) => this.#rows.insertOne({ ...row }, { signal } as object), withinMs))
    if (await put()) return true
    return ttlSecs !== undefined && (await this.#removeExpired(tenant, doc)) && put()
  }

  async replaceIfVersion(tenant: TenantId, { doc, version }: Stored): Promise<boolean> {
    const change = { $set: { ...this.#fieldsOf(doc), doc: toText(this.#spec, doc), version: version + 1 } }
    const filter = {
      ...this.#alive(tenant, this.#spec.key, this.#keyOf(doc)),
      version: { $eq: version },
    } as Filter<Row>
    let count = 0
    const isFree = await unlessTaken(
      this.#gate(async (signal) => {
        count = (await this.#rows.updateOne(filter, change, { signal } as object)).matchedCount
      }),
    )
    return isFree && count === 1
  }

  async delete(tenant: TenantId, key: Fields, version?: number): Promise<boolean> {
    const filter = this.#alive(tenant, this.#spec.key, pick(this.#spec, this.#spec.key, key))
    const own = version === undefined ? filter : ({ ...filter, version: { $eq: version } } as Filter<Row>)
    const { deletedCount } = await this.#gate((signal) => this.#rows.deleteOne(own, { signal } as object))
    return deletedCount === 1
  }

  async page(tenant: TenantId, query: PageQuery): Promise<Stored[]> {
    const { where, bounds, by, isDescending, limit } = checkQuery(this.#spec, query)
    const names = where.map(([field]) => field)
    const own = this.#alive(
      tenant,
      names,
      where.map(([, value]) => value),
    )
    const filter = { $and: [own, ...bounds.map(toCondition)] } as Filter<Row>
    const sort = new Map(by.map((field) => [field, isDescending ? -1 : 1] as const))
    const rows = await this.#gate((signal) =>
      this.#rows.find(filter, { signal, sort, limit, maxTimeMS: READ_MS, projection: STORED }).toArray(),
    )
    return rows.map(toStored)
  }

  #fieldsOf(doc: JsonObject): JsonObject {
    return Object.fromEntries(fieldsOf(this.#spec).map((field) => [field, doc[field]]))
  }

  #keyOf(doc: JsonObject): Scalar[] {
    return pick(
      this.#spec,
      this.#spec.key,
      Object.fromEntries(this.#spec.key.map((name) => [name, doc[name] as string])),
    )
  }

  #alive(tenant: TenantId, fields: readonly string[], values: readonly Scalar[]): Filter<Row> {
    const filter: Record<string, unknown> = { tenant: { $eq: tenant } }
    for (const [i, field] of fields.entries()) filter[field] = { $eq: values[i] }
    if (this.#spec.ttlSecs !== undefined) filter['expires_at'] = { $gt: new Date(this.#now()) }
    return filter
  }

  /** MongoDB removes what has expired once a minute; until then it only counts as gone. */
  async #removeExpired(tenant: TenantId, doc: JsonObject): Promise<boolean> {
    const filter = this.#alive(tenant, this.#spec.key, this.#keyOf(doc))
    const expired = { ...filter, expires_at: { $lte: new Date(this.#now()) } } as Filter<Row>
    const { deletedCount } = await this.#gate((signal) => this.#rows.deleteOne(expired, { signal } as object))
    return deletedCount === 1
  }
}

const STORED = { _id: 0, doc: 1, version: 1 } as const

const toStored = ({ doc, version }: Pick<Row, 'doc' | 'version'>): Stored => ({
  doc: JSON.parse(doc) as JsonObject,
  version,
})

async function unlessTaken(write: Promise<unknown>): Promise<boolean> {
  try {
    await write
    return true
  } catch (cause) {
    if (isDuplicate(cause)) return false
    throw cause
  }
}

/** `(a, b) > (x, y)` as MongoDB says it: `a > x`, or `a = x` and `b > y`. */
function toCondition({ names, values, isLower, isInclusive }: Bound): object {
  const strict = isLower ? '$gt' : '$lt'
  return {
    $or: names.map((name, last) => {
      const operator = isInclusive && last === names.length - 1 ? `${strict}e` : strict
      const equal = names.slice(0, last).map((field, i) => [field, { $eq: values[i] }] as const)
      return { ...Object.fromEntries(equal), [name]: { [operator]: values[last] } }
    }),
  }
}

import type { Db, Collection as DriverCollection, Filter } from 'mongodb'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import {
  type Bound,
  canExpire,
  checkBody,
  checkNextValue,
  checkQuery,
  checkTotal,
  checkUpdate,
  expiryOf,
  indexedFields,
  keyValues,
  ownExpiryOf,
  pickValues,
  serializeDocument,
  uniqueGroupOf,
} from '../document.ts'
import type {
  Collection,
  CollectionSpec,
  Fields,
  FieldUpdate,
  OwnedDocument,
  PageQuery,
  Scalar,
  Stored,
  Total,
  WriteOptions,
} from '../port.ts'
import { settingFields } from './field-update.ts'
import { GroupedRows, ON_PRIMARY } from './grouped-rows.ts'
import { isDuplicate, type OperationGuard } from './guard.ts'
import { MissingRows } from './insert-missing.ts'
import type { Row } from './row.ts'
import type { ServerClock } from './server-clock.ts'
import { insertBefore } from './timely-insert.ts'

type Parts = { db: Db; guard: OperationGuard; now: () => number; clock: ServerClock }

const READ_MS = 2_000

/** Documents in one collection. Every value in a filter is compared by `$eq` or a bound, so a value is never read as a query. */
export class MongoCollection implements Collection {
  readonly #spec: CollectionSpec
  readonly #rows: DriverCollection<Row>
  readonly #grouped: GroupedRows
  readonly #missing: MissingRows
  readonly #guard: OperationGuard
  readonly #now: () => number
  readonly #clock: ServerClock

  constructor(spec: CollectionSpec, { db, guard, now, clock }: Parts) {
    this.#spec = spec
    this.#rows = db.collection<Row>(spec.name)
    this.#grouped = new GroupedRows({ rows: this.#rows, guard, readMs: READ_MS })
    this.#missing = new MissingRows({ db, guard, collection: spec.name })
    this.#guard = guard
    this.#now = now
    this.#clock = clock
  }

  async get(tenant: TenantId, fields: Fields): Promise<Stored | undefined> {
    const group = uniqueGroupOf(this.#spec, fields)
    const values = pickValues(this.#spec, group, fields)
    const found = await this.#grouped.find({ tenant, fields: group, values, unexpired: this.#unexpiredNow() })
    return found && toStored(found)
  }

  async insert(tenant: TenantId, doc: JsonObject, options: WriteOptions = {}): Promise<boolean> {
    const row = this.#rowOf(tenant, doc)
    const tryInsert = () => this.#insertRow(row, options)
    if (await tryInsert()) return true
    return canExpire(this.#spec) && (await this.#deleteExpired(tenant, doc)) && tryInsert()
  }

  async insertMissing(docs: readonly OwnedDocument[]): Promise<OwnedDocument[]> {
    if (docs.length === 0) return []
    const rows = docs.map((owned) => this.#rowOf(owned.tenant, owned.doc, owned))
    const taken = await this.#missing.insert(rows)
    return taken.flatMap((row) => docs[rows.indexOf(row)] ?? [])
  }

  #rowOf(tenant: TenantId, doc: JsonObject, { json, body }: Pick<OwnedDocument, 'json' | 'body'> = {}): Row {
    const row: Row = { tenant, version: 1, doc: serializeDocument(this.#spec, doc, json) }
    if (body !== undefined) row.body = checkBody(this.#spec, body)
    for (const field of indexedFields(this.#spec)) row[field] = doc[field]
    const expiresMs = expiryOf(this.#spec, doc, this.#now())
    if (expiresMs !== undefined) row.expires_at = new Date(expiresMs)
    return row
  }

  /** Resolves with `false` when such a row already exists. */
  #insertRow(row: Row, { durability, ...limits }: WriteOptions): Promise<boolean> {
    const { withinMs, mayWriteUntil } = limits
    if (withinMs === undefined && mayWriteUntil === undefined)
      return this.#grouped.insert(row, { isWeak: durability === 'weak' })
    return succeedsUnlessDuplicate(this.#insertInTime(row, limits))
  }

  /** Rejects with the error of a unique index when such a row already exists. */
  #insertInTime(row: Row, limits: Pick<WriteOptions, 'withinMs' | 'mayWriteUntil'>): Promise<boolean> {
    return this.#guard(async (signal) => {
      const untilMs = limits.mayWriteUntil?.() ?? Infinity
      if (untilMs < Infinity) {
        const key = ['tenant', ...this.#spec.key]
        return insertBefore(this.#rows, row, { key, until: this.#clock.at(untilMs), signal })
      }
      // A copy for each attempt: the driver adds an _id to the object, and inserting that again would be a duplicate.
      await this.#rows.insertOne({ ...row }, { signal } as object)
      return true
    }, limits)
  }

  async replaceIfVersion(tenant: TenantId, { doc, version }: Stored): Promise<boolean> {
    const values = { doc: serializeDocument(this.#spec, doc), ...this.#indexedValues(doc) }
    const filter = this.#unexpired(tenant, this.#spec.key, keyValues(this.#spec, doc))
    return this.#grouped.replace({
      filter,
      version,
      values: { ...values, ...expiryField(ownExpiryOf(this.#spec, doc)) },
    })
  }

  async update(
    tenant: TenantId,
    update: FieldUpdate,
    { durability }: Pick<WriteOptions, 'durability'> = {},
  ): Promise<Stored | undefined> {
    const { key, where, indexed } = checkUpdate(this.#spec, update)
    const fields = [...this.#spec.key, ...where.map(([field]) => field)]
    const filter = this.#unexpired(tenant, fields, [...key, ...where.map(([, value]) => value)])
    const concern = durability === 'weak' ? ON_PRIMARY : {}
    const options = { returnDocument: 'after', projection: STORED, ...concern } as const
    const row = await this.#guard((signal) =>
      this.#rows.findOneAndUpdate(filter, settingFields(update.set, indexed), { signal, ...options } as typeof options),
    )
    return row ? toStored(row) : undefined
  }

  async delete(tenant: TenantId, key: Fields, version?: number): Promise<boolean> {
    const filter = this.#unexpired(tenant, this.#spec.key, pickValues(this.#spec, this.#spec.key, key))
    const versioned = version === undefined ? filter : ({ ...filter, version: { $eq: version } } as Filter<Row>)
    const { deletedCount } = await this.#guard((signal) => this.#rows.deleteOne(versioned, { signal } as object))
    return deletedCount === 1
  }

  async deleteMany(tenant: TenantId, keys: readonly Fields[]): Promise<void> {
    if (keys.length === 0) return
    const each = keys.map((key) => this.#unexpired(tenant, this.#spec.key, pickValues(this.#spec, this.#spec.key, key)))
    const filter = { tenant: { $eq: tenant }, $or: each } as Filter<Row>
    await this.#guard((signal) => this.#rows.deleteMany(filter, { signal } as object))
  }

  async page(tenant: TenantId, query: PageQuery): Promise<Stored[]> {
    const { index, where, bounds, by, isDescending, limit } = checkQuery(this.#spec, query)
    const matching = this.#unexpired(
      tenant,
      where.map(([field]) => field),
      where.map(([, value]) => value),
    )
    const filter = { $and: [matching, ...bounds.map(toCondition)] } as Filter<Row>
    const sort = new Map(by.map((field) => [field, isDescending ? -1 : 1] as const))
    const rows = await this.#guard((signal) =>
      this.#rows.find(filter, { signal, sort, limit, hint: index, maxTimeMS: READ_MS, projection: STORED }).toArray(),
    )
    return rows.map(toStored)
  }

  async nextValue(tenant: TenantId, filter: string, after = ''): Promise<string | undefined> {
    const hint = checkNextValue(this.#spec, filter)
    const matching = { ...this.#unexpired(tenant, [], []), [filter]: { $gt: after } } as Filter<Row>
    const options = { sort: { [filter]: 1 } as const, hint, maxTimeMS: READ_MS, projection: { _id: 0, [filter]: 1 } }
    const row = await this.#guard((signal) => this.#rows.findOne(matching, { signal, ...options }))
    return row?.[filter] as string | undefined
  }

  async total(tenant: TenantId, fields: Fields): Promise<Total> {
    const { index, where, of } = checkTotal(this.#spec, fields)
    const matching = this.#unexpired(
      tenant,
      where.map(([field]) => field),
      where.map(([, value]) => value),
    )
    const group = { _id: null, count: { $sum: 1 }, sum: { $sum: `$${of}` } }
    const [total] = await this.#guard((signal) =>
      this.#rows
        .aggregate<Total>([{ $match: matching }, { $group: group }], { signal, hint: index, maxTimeMS: READ_MS })
        .toArray(),
    )
    return { count: total?.count ?? 0, sum: total?.sum ?? 0 }
  }

  #indexedValues(doc: JsonObject): JsonObject {
    return Object.fromEntries(indexedFields(this.#spec).map((field) => [field, doc[field]]))
  }

  #unexpired(tenant: TenantId, fields: readonly string[], values: readonly Scalar[]): Filter<Row> {
    const filter: Record<string, unknown> = { tenant: { $eq: tenant } }
    for (const [i, field] of fields.entries()) filter[field] = { $eq: values[i] }
    return { ...filter, ...this.#unexpiredNow() }
  }

  #unexpiredNow(): Filter<Row> {
    return canExpire(this.#spec) ? { expires_at: { $gt: new Date(this.#now()) } } : {}
  }

  /** MongoDB deletes expired documents only once a minute; one with the same key would block the insert until then. */
  async #deleteExpired(tenant: TenantId, doc: JsonObject): Promise<boolean> {
    const filter = this.#unexpired(tenant, this.#spec.key, keyValues(this.#spec, doc))
    const expired = { ...filter, expires_at: { $lte: new Date(this.#now()) } } as Filter<Row>
    const { deletedCount } = await this.#guard((signal) => this.#rows.deleteOne(expired, { signal } as object))
    return deletedCount === 1
  }
}

const STORED = { _id: 0, doc: 1, version: 1 } as const

const expiryField = (expiresMs: number | undefined): { expires_at?: Date } =>
  expiresMs === undefined ? {} : { expires_at: new Date(expiresMs) }

const toStored = ({ doc, version, body }: Pick<Row, 'doc' | 'version' | 'body'>): Stored => ({
  doc: JSON.parse(doc) as JsonObject,
  version,
  ...(body !== undefined && { body }),
})

/** Returns `false` also when the write violates a unique index. */
async function succeedsUnlessDuplicate(write: Promise<boolean>): Promise<boolean> {
  try {
    return await write
  } catch (cause) {
    if (isDuplicate(cause)) return false
    throw cause
  }
}

/**
 * Writes `(a, b) > (x, y)` as a MongoDB filter: `a > x`, or `a = x` and `b > y`. MongoDB cannot use an index for `$or`, so the
 * first field is also compared by itself.
 */
function toCondition({ names, values, isLower, isInclusive }: Bound): object {
  const strict = isLower ? '$gt' : '$lt'
  const cases = names.map((name, last) => {
    const operator = isInclusive && last === names.length - 1 ? `${strict}e` : strict
    const equal = names.slice(0, last).map((field, i) => [field, { $eq: values[i] }] as const)
    return { ...Object.fromEntries(equal), [name]: { [operator]: values[last] } }
  })
  const [only, ...more] = cases
  return more.length === 0 ? { ...only } : { [names[0] ?? '']: { [`${strict}e`]: values[0] }, $or: cases }
}

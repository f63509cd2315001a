import type { SQLInputValue } from 'node:sqlite'
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
  Stored,
  Total,
  WriteOptions,
} from '../port.ts'
import { storeUnavailable } from '../unavailable.ts'
import { type StatementParts, Statements } from './statements.ts'

/** How many expired documents an insert deletes along with its own work; few, so that an insert is not slow when the expired documents are long. */
const DELETED_PER_INSERT = 10
/** Each call of node:sqlite costs about 8,000 instructions in addition to those for its rows, so several rows are inserted together. */
const INSERTED_TOGETHER = 10

/** Documents in one table. Statements run synchronously on this thread, and their writes reach the disk in order. */
export class SqliteCollection implements Collection {
  readonly #spec: CollectionSpec
  readonly #statements: Statements
  readonly #now: () => number

  constructor(spec: CollectionSpec, { now, ...parts }: StatementParts & { now: () => number }) {
    this.#spec = spec
    this.#statements = new Statements(parts)
    this.#now = now
  }

  async get(tenant: TenantId, fields: Fields): Promise<Stored | undefined> {
    const group = uniqueGroupOf(this.#spec, fields)
    const values = pickValues(this.#spec, group, fields)
    const [row] = this.#statements.all<Row>(
      `SELECT doc, version${this.#spec.hasBody ? ', body' : ''} FROM ${this.#unexpired(group)}`,
      [tenant, ...this.#expiryParameters(), ...values],
    )
    return row && toStored(row)
  }

  async insert(
    tenant: TenantId,
    doc: JsonObject,
    { withinMs = Infinity, mayWriteUntil = () => Infinity, durability = 'full' }: WriteOptions = {},
  ): Promise<boolean> {
    const text = serializeDocument(this.#spec, doc)
    const end = performance.now() + withinMs
    const expiresAt = expiryOf(this.#spec, doc, this.#now()) ?? null
    const sql = `INSERT INTO ${this.#spec.name} (tenant, version, expires_at, doc) VALUES (?, 1, ?, ?)`
    const tryInsert = () => this.#statements.changes(sql, [tenant, expiresAt, text])
    return this.#statements.write(durability, () => {
      if (performance.now() >= end) throw storeUnavailable('the time for the write is over')
      if (performance.now() >= mayWriteUntil()) throw storeUnavailable('this process may no longer write')
      if (canExpire(this.#spec)) this.#deleteSomeExpired()
      return tryInsert() || (canExpire(this.#spec) && this.#deleteExpired(tenant, doc) && tryInsert())
    })
  }

  async insertMissing(
    docs: readonly OwnedDocument[],
    { durability = 'full' }: WriteOptions = {},
  ): Promise<OwnedDocument[]> {
    if (docs.length === 0) return []
    const now = this.#now()
    const { name, hasBody } = this.#spec
    const rows = docs.map(({ tenant, doc, json, body }): SQLInputValue[] => {
      const row = [tenant, expiryOf(this.#spec, doc, now) ?? null, serializeDocument(this.#spec, doc, json)]
      const checked = body === undefined ? null : checkBody(this.#spec, body)
      if (hasBody) row.push(checked)
      return row
    })
    const columns = `tenant, version, expires_at, doc${hasBody ? ', body' : ''}`
    const values = `(?, 1, ?, ?${hasBody ? ', ?' : ''})`
    const one = `INSERT INTO ${name} (${columns}) VALUES ${values}`
    const several = `${one}${`, ${values}`.repeat(INSERTED_TOGETHER - 1)}`
    return this.#statements.write(durability, () =>
      this.#statements.inTransaction(() => {
        if (canExpire(this.#spec)) this.#deleteSomeExpired(docs.length)
        const skipped: OwnedDocument[] = []
        for (let from = 0; from < rows.length; from += INSERTED_TOGETHER) {
          const together = rows.slice(from, from + INSERTED_TOGETHER)
          if (together.length === INSERTED_TOGETHER && this.#statements.changes(several, together.flat())) continue
          const candidates = docs.slice(from, from + INSERTED_TOGETHER)
          skipped.push(...candidates.filter((_, i) => !this.#statements.changes(one, together[i] ?? [])))
        }
        return skipped
      }),
    )
  }

  async replaceIfVersion(
    tenant: TenantId,
    { doc, version }: Stored,
    { durability = 'full' }: WriteOptions = {},
  ): Promise<boolean> {
    const text = serializeDocument(this.#spec, doc)
    const key = keyValues(this.#spec, doc)
    const changes = 'doc = ?, version = version + 1, expires_at = coalesce(?, expires_at)'
    const sql = `UPDATE ${this.#spec.name} SET ${changes} WHERE ${this.#where(this.#spec.key)} AND version = ?`
    const values = [text, ownExpiryOf(this.#spec, doc) ?? null, tenant, ...this.#expiryParameters(), ...key, version]
    return this.#statements.write(durability, () => this.#statements.changes(sql, values))
  }

  /** Nothing else runs on this thread between the read and the write, and no other process writes to the file. */
  async update(
    tenant: TenantId,
    update: FieldUpdate,
    { durability = 'full' }: Pick<WriteOptions, 'durability'> = {},
  ): Promise<Stored | undefined> {
    const { key, where } = checkUpdate(this.#spec, update)
    const fields = [...this.#spec.key, ...where.map(([field]) => field)]
    const found = [tenant, ...this.#expiryParameters(), ...key, ...where.map(([, value]) => value)]
    const sql = `UPDATE ${this.#spec.name} SET doc = ?, version = version + 1 WHERE ${this.#where(fields)}`
    return this.#statements.write(durability, () => {
      const [row] = this.#statements.all<Row>(`SELECT doc, version FROM ${this.#unexpired(fields)}`, found)
      if (!row) return undefined
      const { doc, version } = toStored(row)
      const next = { doc: { ...doc, ...update.set }, version: version + 1 }
      const isUpdated = this.#statements.changes(sql, [serializeDocument(this.#spec, next.doc), ...found])
      return isUpdated ? next : undefined
    })
  }

  async delete(tenant: TenantId, key: Fields, version?: number): Promise<boolean> {
    const values = pickValues(this.#spec, this.#spec.key, key)
    const sql = `DELETE FROM ${this.#unexpired(this.#spec.key)}${version === undefined ? '' : ' AND version = ?'}`
    const parameters = [tenant, ...this.#expiryParameters(), ...values, ...(version === undefined ? [] : [version])]
    return this.#statements.write('full', () => this.#statements.changes(sql, parameters))
  }

  async deleteMany(
    tenant: TenantId,
    keys: readonly Fields[],
    { durability = 'full' }: Pick<WriteOptions, 'durability'> = {},
  ): Promise<void> {
    if (keys.length === 0) return
    const all = keys.map((key) => pickValues(this.#spec, this.#spec.key, key))
    const sql = `DELETE FROM ${this.#unexpired(this.#spec.key)}`
    await this.#statements.write(durability, () =>
      this.#statements.inTransaction(() =>
        all.reduce((sum, key) => sum + this.#statements.run(sql, [tenant, ...this.#expiryParameters(), ...key]), 0),
      ),
    )
  }

  async page(tenant: TenantId, query: PageQuery): Promise<Stored[]> {
    const { index, where, bounds, by, isDescending, limit } = checkQuery(this.#spec, query)
    const order = by.map((field) => `${field} ${isDescending ? 'DESC' : 'ASC'}`).join(', ')
    const conditions = [this.#where(where.map(([field]) => field)), ...bounds.map(toCondition)].join(' AND ')
    const { name } = this.#spec
    const from = `${name} INDEXED BY ${name}_${index} WHERE ${conditions}`
    const values = [...where.map(([, value]) => value), ...bounds.flatMap(({ values: limits }) => limits), limit]
    const sql = `SELECT doc, version FROM ${from} ORDER BY ${order} LIMIT ?`
    return this.#statements.all<Row>(sql, [tenant, ...this.#expiryParameters(), ...values]).map(toStored)
  }

  async nextValue(tenant: TenantId, filter: string, after = ''): Promise<string | undefined> {
    const index = checkNextValue(this.#spec, filter)
    const { name } = this.#spec
    const from = `${name} INDEXED BY ${name}_${index} WHERE ${this.#where([])} AND ${filter} > ?`
    const sql = `SELECT ${filter} AS value FROM ${from} ORDER BY ${filter} LIMIT 1`
    const [found] = this.#statements.all<{ value: string }>(sql, [tenant, ...this.#expiryParameters(), after])
    return found?.value
  }

  async total(tenant: TenantId, fields: Fields): Promise<Total> {
    const { index, where, of } = checkTotal(this.#spec, fields)
    const { name } = this.#spec
    const condition = this.#where(where.map(([field]) => field))
    const sql = `SELECT count(*) AS count, total(${of}) AS sum FROM ${name} INDEXED BY ${name}_${index} WHERE ${condition}`
    const [total] = this.#statements.all<Total>(sql, [tenant, ...where.map(([, value]) => value)])
    return { count: total?.count ?? 0, sum: total?.sum ?? 0 }
  }

  #unexpired(fields: readonly string[]): string {
    return `${this.#spec.name} WHERE ${this.#where(fields)}`
  }

  #where(fields: readonly string[]): string {
    const expiry = canExpire(this.#spec) ? ['expires_at > ?'] : []
    return ['tenant = ?', ...expiry, ...fields.map((field) => `${field} = ?`)].join(' AND ')
  }

  /** The parameter of the condition on `expires_at`, in collections that have one. */
  #expiryParameters(): number[] {
    return canExpire(this.#spec) ? [this.#now()] : []
  }

  /** Deletes the expired document with this key, which blocks the insert. */
  #deleteExpired(tenant: TenantId, doc: JsonObject): boolean {
    const { name, key } = this.#spec
    const hasSameKey = key.map((field) => `${field} = ?`).join(' AND ')
    const sql = `DELETE FROM ${name} WHERE tenant = ? AND ${hasSameKey} AND expires_at <= ?`
    return this.#statements.changes(sql, [tenant, ...keyValues(this.#spec, doc), this.#now()])
  }

  /** Most inserts find nothing to delete; a query shows that at less cost than a deletion. */
  #deleteSomeExpired(inserts = 1): void {
    const { name } = this.#spec
    const expired = `SELECT rowid FROM ${name} WHERE expires_at <= ? LIMIT ?`
    const now = this.#now()
    if (this.#statements.all<Row>(expired, [now, 1]).length === 0) return
    this.#statements.run(`DELETE FROM ${name} WHERE rowid IN (${expired})`, [now, inserts * DELETED_PER_INSERT])
  }
}

type Row = { doc: string; version: number; body?: string | null }

const toStored = ({ doc, version, body }: Row): Stored => ({
  doc: JSON.parse(doc) as JsonObject,
  version,
  ...(typeof body === 'string' && { body }),
})

function toCondition({ names, values, isLower, isInclusive }: Bound): string {
  const operator = `${isLower ? '>' : '<'}${isInclusive ? '=' : ''}`
  return `(${names.join(', ')}) ${operator} (${values.map(() => '?').join(', ')})`
}

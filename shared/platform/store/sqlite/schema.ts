import type { DatabaseSync } from 'node:sqlite'
import { assertValidSpec, canExpire, indexedFields, indexesOf } from '../document.ts'
import type { CollectionSpec } from '../port.ts'
import { transact } from './transact.ts'

/** Creates the tables of `collections` as one transaction: one write to the disk, and all of them or none. */
export const createTables = (db: DatabaseSync, collections: readonly CollectionSpec[]): void =>
  transact(db, () => {
    for (const spec of collections) createTable(db, spec)
  })

/**
 * Creates the table of a collection and its indexes, as far as they do not exist. A document is JSON text; its indexed fields
 * are VIRTUAL generated columns, so that the table holds no second copy of them and a field that a later version looks up can
 * be added to the table of an earlier one.
 */
function createTable(db: DatabaseSync, spec: CollectionSpec): void {
  assertValidSpec(spec)
  const { name } = spec
  const columns = ['tenant TEXT NOT NULL', 'version INTEGER NOT NULL', 'expires_at INTEGER', 'doc TEXT NOT NULL']
  const later = new Map(indexedFields(spec).map((field) => [field, columnOf(field)]))
  if (spec.hasBody) later.set('body', 'body TEXT')
  db.exec(`CREATE TABLE IF NOT EXISTS ${name} (${[...columns, ...later.values()].join(', ')})`)
  const existing = new Set(
    db
      .prepare(`SELECT name FROM pragma_table_xinfo('${name}')`)
      .all()
      .map((row) => row['name']),
  )
  for (const [field, column] of later) if (!existing.has(field)) db.exec(`ALTER TABLE ${name} ADD COLUMN ${column}`)
  for (const index of indexesOf(spec)) {
    const kind = index.isUnique ? 'UNIQUE INDEX' : 'INDEX'
    db.exec(`CREATE ${kind} IF NOT EXISTS ${name}_${index.name} ON ${name} (tenant, ${index.fields.join(', ')})`)
  }
  if (canExpire(spec))
    db.exec(`CREATE INDEX IF NOT EXISTS ${name}_by_expiry ON ${name} (expires_at) WHERE expires_at IS NOT NULL`)
}

const columnOf = (field: string): string => `${field} AS (doc ->> '$.${field}') VIRTUAL`

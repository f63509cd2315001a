import type { DatabaseSync } from 'node:sqlite'
import { checkSpec, fieldsOf, indexesOf } from '../document.ts'
import type { CollectionSpec } from '../port.ts'

/**
 * A table of JSON documents. What is looked up are VIRTUAL generated columns: an index on them costs no second copy, and a
 * field that a later version looks up is added to the table of an earlier one.
 */
export function createTable(db: DatabaseSync, spec: CollectionSpec): void {
  checkSpec(spec)
  const { name } = spec
  db.exec(
    `CREATE TABLE IF NOT EXISTS ${name} (tenant TEXT NOT NULL, version INTEGER NOT NULL, expires_at INTEGER, doc TEXT NOT NULL)`,
  )
  const known = new Set(
    db
      .prepare(`SELECT name FROM pragma_table_xinfo('${name}')`)
      .all()
      .map((row) => row['name']),
  )
  for (const field of fieldsOf(spec))
    if (!known.has(field)) db.exec(`ALTER TABLE ${name} ADD COLUMN ${field} AS (doc ->> '$.${field}') VIRTUAL`)
  for (const index of indexesOf(spec)) {
    const kind = index.isUnique ? 'UNIQUE INDEX' : 'INDEX'
    db.exec(`CREATE ${kind} IF NOT EXISTS ${name}_${index.name} ON ${name} (tenant, ${index.fields.join(', ')})`)
  }
  if (spec.ttlSecs !== undefined)
    db.exec(`CREATE INDEX IF NOT EXISTS ${name}_by_expiry ON ${name} (expires_at) WHERE expires_at IS NOT NULL`)
}

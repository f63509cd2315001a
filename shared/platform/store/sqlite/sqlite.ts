import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createHealth } from '../../../kernel/health.ts'
import { assertValidSpec, canExpire, indexedFields, indexesOf, requireCollection } from '../document.ts'
import type { CollectionSpec, Store } from '../port.ts'
import { SqliteCollection } from './collection.ts'
import { createOperationGuard } from './guard.ts'
import { transact } from './transact.ts'
import { WriteGroup } from './write-group.ts'

export type SqliteOptions = {
  /** Path of the database; its folder is created if it does not exist. */
  file: string
  collections: readonly CollectionSpec[]
  /** Milliseconds since 1970. */
  now?: () => number
}

/** How long a statement waits for another process that has locked the file. The event loop is blocked meanwhile. */
const BUSY_MS = 200
/** Only the user who runs the server may read the database. SQLite gives its other files the same mode. */
const MODE = 0o600
const FOLDER_MODE = 0o700

/**
 * Opens the store of the standalone form: one file and its write-ahead log. Throws when the file cannot be opened or is not a
 * database.
 *
 * With `synchronous=NORMAL` a write is in the operating system's memory, which survives a crash of this process but not a power
 * failure. So each write with the durability `full` is acknowledged only after an `fdatasync` of the log, which also covers all
 * writes before it. It runs outside the event loop; writes that come meanwhile form the next transaction, with one `fdatasync` for all of them.
 */
export async function openSqliteStore({ file, collections, now = Date.now }: SqliteOptions): Promise<Store> {
  await mkdir(dirname(file), { recursive: true, mode: FOLDER_MODE })
  await (await open(file, 'a', MODE)).close()
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY')
  createTables(db, collections)
  db.exec('PRAGMA user_version = 1') // Any write: it creates the log that is opened next.
  const log = await open(`${file}-wal`, 'r+')
  const health = createHealth()
  const guard = createOperationGuard(health)
  const parts = { db, guard, writes: new WriteGroup({ db, guard, sync: () => log.datasync() }), now }
  const opened = new Map(collections.map((spec) => [spec.name, new SqliteCollection(spec, parts)]))
  return {
    collection: ({ name }) => requireCollection(name, opened),
    awayMs: health.awayMs,
    async close() {
      if (!db.isOpen) return
      await parts.writes.add(() => true).catch(() => {}) // This resolves when all earlier writes are done.
      db.close()
      await log.close()
    },
  }
}

/** Creates the tables of `collections` in one transaction: one write to the disk, and either all of them or none. */
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

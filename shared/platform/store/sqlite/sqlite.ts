import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createHealth } from '../../../kernel/health.ts'
import { requireCollection } from '../document.ts'
import type { CollectionSpec, Store } from '../port.ts'
import { SqliteCollection } from './collection.ts'
import { createOperationGuard } from './guard.ts'
import { createTables } from './schema.ts'
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
 * writes before it. It runs outside the event loop; the writes that come meanwhile are the next transaction, with one for all of them.
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
      await parts.writes.add(() => true).catch(() => {}) // The writes before it are done by then.
      db.close()
      await log.close()
    },
  }
}

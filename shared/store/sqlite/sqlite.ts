import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createHealth } from '../../health.ts'
import { openedAs } from '../document.ts'
import type { CollectionSpec, Store } from '../port.ts'
import { SqliteCollection } from './collection.ts'
import { createFlush } from './flush.ts'
import { createGuard } from './guard.ts'
import { createTable } from './schema.ts'

export type SqliteOptions = {
  /** The database's path; its folder is made where it is missing. */
  file: string
  collections: readonly CollectionSpec[]
  /** Milliseconds since 1970. */
  now?: () => number
}

/** Another process may hold the file for so long, while this one's event loop waits. */
const BUSY_MS = 200
/** The database is the user's alone, and the files beside it like it. */
const MODE = 0o600

/**
 * The standalone form's store: one file and its write-ahead log. Throws when the file cannot be opened or is no database.
 *
 * `synchronous=NORMAL` leaves the log in the system's memory, which outlives this process but not the machine's power: so
 * each write is acknowledged after an `fdatasync` of the log, one for all that wait, beside the event loop.
 */
export async function openSqliteStore({ file, collections, now = Date.now }: SqliteOptions): Promise<Store> {
  await mkdir(dirname(file), { recursive: true })
  await (await open(file, 'a', MODE)).close()
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY')
  for (const spec of collections) createTable(db, spec)
  db.exec('PRAGMA user_version = 1') // A write, so that there is a log to flush.
  const log = await open(`${file}-wal`, 'r+')
  const health = createHealth()
  const parts = { db, guard: createGuard(health), flush: createFlush(() => log.datasync()), now }
  const opened = new Map(collections.map((spec) => [spec.name, new SqliteCollection(spec, parts)]))
  return {
    collection: ({ name }) => openedAs(name, opened),
    awayMs: health.awayMs,
    async close() {
      if (!db.isOpen) return
      db.close()
      await log.close()
    },
  }
}

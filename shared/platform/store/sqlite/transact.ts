import type { DatabaseSync } from 'node:sqlite'

/** Does all writes of `act` with one commit, or none of them when it throws. Within a transaction they are a part of that one. */
export function transact<T>(db: DatabaseSync, act: () => T): T {
  if (db.isTransaction) return act()
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = act()
    db.exec('COMMIT')
    return result
  } catch (cause) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw cause
  }
}

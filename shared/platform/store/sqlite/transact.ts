import type { DatabaseSync } from 'node:sqlite'

/** Commits all writes of `act` together, or none of them when it throws. Within another transaction they become a part of that one. */
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

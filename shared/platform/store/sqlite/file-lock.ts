import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export type FileLock = { release(): void }

const SQLITE_BUSY = 5
const MODE = 0o600

/**
 * Locks a file, which is created if it is missing and stays empty. Returns `undefined` while another process holds the lock. The kernel
 * releases the lock when this process ends, however it ends, so a file that was left behind locks nothing.
 *
 * Node has no call for the kernel's record locks (fcntl), so an empty database takes them: SQLite locks its file in the same way on
 * local and network file systems, and a transaction that writes nothing leaves nothing to repair. Nothing else in this process may open
 * the file: the kernel drops all locks of a process on a file when it closes any descriptor of it.
 */
export function lockFile(path: string): FileLock | undefined {
  let db: DatabaseSync | undefined
  try {
    const opened = (db = new DatabaseSync(path))
    opened.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE') // A journal on the disk would outlive a killed process.
    chmodSync(path, MODE)
    return { release: () => opened.close() }
  } catch (cause) {
    db?.close()
    if (!(cause instanceof Error)) throw cause
    if ('errcode' in cause && cause.errcode === SQLITE_BUSY) return undefined
    throw new Error(`${path} cannot be locked (${cause.message}): let this user create and change files there`, {
      cause,
    })
  }
}

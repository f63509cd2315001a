import { lstat, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoring, isAbsent, removeWorkspace } from './workspace.ts'

/** If no process has marked a folder for this long, its process has died. */
const ABANDONED_MS = 3_600_000

/**
 * The folders of sessions and of runs that workers started. Folders of plans and flows' runs are left to executors, because a plan continues after
 * its executor has died.
 */
const OF_SESSION = /^.+\.[0-9a-f]{16}$/
const OF_RUN = /^run_(?!0{8})[0-9a-f]{32}$/

/** Whether a folder of this name is that of a session, or of a run that a worker has started. */
export const isOfWorker = (name: string): boolean => OF_SESSION.test(name) || OF_RUN.test(name)

/** A name that no tenant's folder can have. */
const CLOCK_FILE = '.clock'

/**
 * The time of the file system below `root`; `undefined` when there is no such folder. The workers that share the folder share this clock,
 * while a worker's own clock may be wrong by hours.
 */
export function fileSystemTime(root: string): Promise<Date | undefined> {
  const file = join(root, CLOCK_FILE)
  return ignoringAbsence(
    writeFile(file, 'The time of the file system.\n', { mode: 0o600 }).then(async () => (await lstat(file)).mtime),
  )
}

/** Marks these folders as used at this time. A folder that does not exist is left out. */
export async function markWorkspaces(paths: Iterable<string>, at: Date): Promise<void> {
  for (const path of paths) await ignoringAbsence(utimes(path, at, at))
}

/** `now` is the time of the file system. Stored sessions are kept for `storedMs` after their worker has died. */
type Sweep = { now: Date; storedMs?: number; isOpen(path: string): boolean }

/** Removes the folders below `root` that workers have left behind, except those for which `isOpen` returns `true`. */
export async function sweepWorkspaces(root: string, { now, storedMs = 0, isOpen }: Sweep): Promise<void> {
  for (const tenant of await foldersIn(root)) {
    for (const name of await foldersIn(join(root, tenant))) {
      const path = join(root, tenant, name)
      const keptMs = OF_SESSION.test(name) ? storedMs : OF_RUN.test(name) ? 0 : Infinity
      if (keptMs < Infinity && !isOpen(path) && (await isAbandoned(path, now, keptMs))) await removeWorkspace(path)
    }
  }
}

export async function foldersIn(path: string): Promise<string[]> {
  const entries = await ignoringAbsence(readdir(path, { withFileTypes: true }))
  return (entries ?? []).filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** Whether nobody has marked the folder for an hour and `keptMs`. */
export async function isAbandoned(path: string, now: Date, keptMs: number): Promise<boolean> {
  const found = await ignoringAbsence(lstat(path))
  return found !== undefined && now.getTime() - found.mtimeMs > ABANDONED_MS + keptMs
}

/** Returns `undefined` if the folder is gone: another process may remove it at any time. */
const ignoringAbsence = <T>(act: Promise<T>): Promise<T | undefined> => ignoring(isAbsent, act)

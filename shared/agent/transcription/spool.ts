import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** A folder for unfinished uploads. It is deleted with its process. */
export type Spool = {
  readonly dir: string
  /** Deletes the folder with all that is left in it. */
  close(): Promise<void>
}

/** Owners on another machine cannot be checked; they are assumed to be dead after this time. */
const STALE_MS = 24 * 3_600_000

/**
 * Makes this process's folder under `root`, and deletes the folders of processes that are gone: which a crash has left behind. Folders
 * are named `<host>.<pid>.<uuid>`, so that processes that share `root` do not touch each other's.
 */
export async function openSpool(root: string, self: { pid: number; isAlive(pid: number): boolean }): Promise<Spool> {
  await mkdir(root, { recursive: true, mode: 0o700 })
  for (const name of await readdir(root)) {
    if (await isAbandoned(root, name, self)) await rm(join(root, name), { recursive: true, force: true })
  }
  const dir = join(root, `${hostname()}.${self.pid}.${randomUUID()}`)
  await mkdir(dir, { mode: 0o700 })
  return { dir, close: () => rm(dir, { recursive: true, force: true }) }
}

async function isAbandoned(root: string, name: string, self: { pid: number; isAlive(pid: number): boolean }) {
  const [, host, pid] = /^(.+)\.(\d+)\.[0-9a-f-]{36}$/.exec(name) ?? []
  if (host === undefined) return false // Not ours.
  if (host === hostname()) return Number(pid) === self.pid || !self.isAlive(Number(pid))
  const found = await stat(join(root, name)).catch(() => undefined) // Its owner may have deleted it meanwhile.
  return found !== undefined && Date.now() - found.mtimeMs > STALE_MS
}

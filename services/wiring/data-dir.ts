import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../../shared/platform/config/config.ts'
import { lockFile } from '../../shared/platform/store/sqlite/file-lock.ts'
import { ownProcess } from './process.ts'

/** The lock file. The file beside it describes the holder, and is valid only while the lock is held. */
const LOCK_FILE = 'in-use.lock'
const HOLDER_FILE = 'in-use.json'

type Holder = { program: string; pid: number; host: string; since: string; url?: string }

export type HeldDataDir = {
  /** Adds the address to the message that a second start prints. */
  announce(url: string): void
  release(): void
}

/**
 * Makes DATA_DIR, which only its owner may enter, and keeps every other start away from it until this process ends: a second process would
 * take the running plans of the first for those of a dead process. Throws `ConfigError` with the holder.
 */
export function holdDataDir(dataDir: string, program: string): HeldDataDir {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const lock = lockFile(join(dataDir, LOCK_FILE))
  const path = join(dataDir, HOLDER_FILE)
  if (!lock) throw new ConfigError([inUse(dataDir, readHolder(path))])
  const holder: Holder = { program, pid: ownProcess.pid, host: hostname(), since: new Date().toISOString() }
  const write = (more: Partial<Holder> = {}) =>
    writeFileSync(path, `${JSON.stringify({ ...holder, ...more })}\n`, { mode: 0o600 })
  write()
  return {
    announce: (url) => write({ url }),
    release() {
      rmSync(path, { force: true })
      lock.release()
    },
  }
}

function inUse(dataDir: string, holder: Holder | undefined): string {
  const cure = 'stop that process, or set DATA_DIR to another folder for this one'
  if (!holder) return `DATA_DIR ${dataDir} is in use by another process, or its file system has no locks: ${cure}`
  const { program, pid, host, since, url } = holder
  const who = `process ${pid} on ${host} (${program}${url === undefined ? '' : ` at ${url}`}, since ${since})`
  return `DATA_DIR ${dataDir} is in use by ${who}: ${cure}`
}

/** `undefined` when the holder has not written it yet. */
function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder
  } catch {
    return undefined
  }
}

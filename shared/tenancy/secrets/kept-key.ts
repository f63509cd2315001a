import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { masterKey } from '../../platform/config/values.ts'

/** The file in DATA_DIR with the master key of a standalone server that has no MASTER_KEY. Its content is a valid MASTER_KEY. */
export const KEPT_KEY_FILE = 'master.key'

const KEY_BYTES = 32

/** The key in the folder; `undefined` when there is none. Throws when the file does not hold one. */
export async function readKeptKey(folder: string): Promise<Uint8Array | undefined> {
  const file = join(folder, KEPT_KEY_FILE)
  if (!existsSync(file)) return undefined
  const key = masterKey((await readFile(file, 'utf8')).trim())
  if (key instanceof Uint8Array) return key
  throw new Error(`${file} does not hold a master key: restore it from a backup, or set MASTER_KEY`)
}

/** Reads the key in the folder, or makes one. Of several processes that make one at the same time, all get the same. */
export async function keepKey(folder: string): Promise<{ key: Uint8Array; isNew: boolean }> {
  const kept = await readKeptKey(folder)
  if (kept) return { key: kept, isNew: false }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const isNew = await createOnce(folder, `${randomBytes(KEY_BYTES).toString('base64')}\n`)
  const key = await readKeptKey(folder)
  if (!key) throw new Error(`${join(folder, KEPT_KEY_FILE)} cannot be kept: set MASTER_KEY`)
  return { key, isNew }
}

/** Creates the file with its whole content at once, which `open` cannot do but a link can. Returns false when another process was faster. */
async function createOnce(folder: string, text: string): Promise<boolean> {
  const file = join(folder, KEPT_KEY_FILE)
  const temporary = join(folder, `.${KEPT_KEY_FILE}.${randomUUID()}`)
  try {
    await writeSynced(temporary, text)
    await link(temporary, file)
    await syncFolder(folder)
    return true
  } catch (cause) {
    if (existsSync(file)) return false
    throw cause
  } finally {
    await rm(temporary, { force: true })
  }
}

/** On the disk before a secret is sealed with it: a power failure must not take the key and leave the secret. */
async function writeSynced(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder)
  await handle.sync()
}

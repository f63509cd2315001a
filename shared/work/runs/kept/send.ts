import type { Objects } from '../../../platform/objects/port.ts'
import type { Gate } from './gate.ts'
import type { KeptFile, Manifest } from './manifest.ts'
import type { ScannedFile } from './scan.ts'
import { readContent } from './transfer.ts'

/** The content of a file that was hashed, at a time in milliseconds. */
type Hashed = { mark: string; atMs: number; sha256: string; bytes: number }
/** By their paths. */
export type HashedFiles = ReadonlyMap<string, Hashed>

export type Sending = {
  /** What the store has, and the files that were hashed for it. */
  manifest: Manifest
  hashed: HashedFiles
  root: string
  prefix: string
  objects: Pick<Objects, 'write'>
  gate: Gate
}

/** A file that was changed this shortly before it was hashed may change again without another time. */
const RACY_MS = 2_000

/** Sends the contents that the store does not have. A file that has gone, or cannot be read, is in neither result. */
export async function sendContents(
  scanned: readonly ScannedFile[],
  sending: Sending,
): Promise<{ files: KeptFile[]; hashed: HashedFiles }> {
  const { manifest, gate } = sending
  const stored = new Map(manifest.files.map(({ sha256, object }) => [sha256, Promise.resolve(object)]))
  const hashed = new Map<string, Hashed>()
  const files = await gate.each(scanned, async (file): Promise<KeptFile[]> => {
    const known = await sendFile(file, stored, sending)
    if (!known) return []
    const { path, mode, mtimeMs } = file
    const { sha256, bytes } = known
    hashed.set(path, known)
    return [{ path, mode, mtimeMs, bytes, sha256, object: (await stored.get(sha256)) ?? '' }]
  })
  return { files: files.flat(), hashed }
}

/**
 * Hashes a file that may have changed, and sends its content if it is new. No object gets the name of one that was deleted: the deletion
 * may be carried out late.
 */
async function sendFile(
  { path, mark, ctimeMs }: ScannedFile,
  stored: Map<string, Promise<string>>,
  { manifest: { owner, revision }, hashed, root, prefix, objects }: Sending,
): Promise<Hashed | undefined> {
  const known = hashed.get(path)
  const isSame = known?.mark === mark && known.atMs - ctimeMs > RACY_MS && stored.has(known.sha256)
  if (known && isSame) return known
  const atMs = Date.now()
  const content = await readContent(root, path)
  if (!content) return undefined
  const { sha256, bytes } = content
  if (!stored.has(sha256)) {
    const object = `${owner}/${revision}-${sha256}`
    const sent = objects.write(`${prefix}${object}`, content).then(() => object)
    sent.catch(() => {}) // Whoever awaits it gets the error.
    stored.set(sha256, sent)
  }
  await stored.get(sha256)
  return { mark, atMs, sha256, bytes }
}

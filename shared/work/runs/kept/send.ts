import type { ObjectContent, Objects } from '../../../platform/objects/port.ts'
import type { SaveProgress } from '../workspaces.ts'
import type { Gate } from './gate.ts'
import type { KeptFile, Manifest, StoredContent } from './manifest.ts'
import { Packer, SMALL_BYTES } from './pack.ts'
import type { ScannedFile } from './scan.ts'
import { readContent } from './transfer.ts'

/** The hash of a file's content, and when it was computed, in milliseconds. */
type Hashed = { mark: string; atMs: number; sha256: string; bytes: number }
/** The hashed files by path. */
export type HashedFiles = ReadonlyMap<string, Hashed>

export type Sending = {
  /** The manifest in the store, and the files that were hashed for it. */
  manifest: Manifest
  hashed: HashedFiles
  /** The contents that were sent for the next manifest, which is not written yet, by hash. */
  sent: Map<string, StoredContent>
  root: string
  prefix: string
  objects: Pick<Objects, 'write'>
  gate: Gate
  /** Called after each step of the store or the disk. */
  onProgress(progress: SaveProgress): void
}

/** A file that was changed less than this before it was hashed may change again and keep the same modification time. */
const RACY_MS = 2_000

/** Sends the contents that the store does not have. A file that was removed or cannot be read is in neither result. */
export async function sendContents(
  scanned: readonly ScannedFile[],
  sending: Sending,
): Promise<{ files: KeptFile[]; hashed: HashedFiles }> {
  const sender = new Sender(scanned, sending)
  const hashed = new Map<string, Hashed>()
  await sending.gate.each(scanned, async (file) => {
    const known = await sender.send(file)
    if (known) hashed.set(file.path, known)
  })
  await sender.flush()
  const files: KeptFile[] = []
  for (const { path, mode, mtimeMs } of scanned) {
    const known = hashed.get(path)
    const place = known && (await sender.placeOf(known))
    if (place) files.push({ path, mode, mtimeMs, bytes: known.bytes, sha256: known.sha256, ...place })
  }
  return { files, hashed }
}

class Sender {
  readonly #sending: Sending
  readonly #stored: Map<string, Promise<StoredContent>>
  readonly #packer = new Packer((content) => this.#write(content))
  readonly #progress: SaveProgress

  constructor(scanned: readonly ScannedFile[], sending: Sending) {
    this.#sending = sending
    this.#stored = new Map(storedContents(scanned, sending))
    this.#progress = { stored: 0, files: scanned.length }
  }

  /**
   * Hashes a file that may have changed, and sends its content if it is new; a small file may be sent later, together with others. Returns
   * `undefined` when the file was removed.
   */
  async send({ path, mark, ctimeMs }: ScannedFile): Promise<Hashed | undefined> {
    const { hashed, root } = this.#sending
    const known = hashed.get(path)
    const isSame = known?.mark === mark && known.atMs - ctimeMs > RACY_MS && this.#stored.has(known.sha256)
    if (known && isSame) return this.#done(known)
    const atMs = Date.now()
    const content = await readContent(root, path, () => this.#tell(0))
    if (!content) return undefined
    const { sha256, bytes } = content
    const stored = this.#stored.get(sha256) ?? this.#store(content)
    const isSmall = bytes <= SMALL_BYTES
    if (isSmall)
      stored.then(() => this.#tell(1)).catch(() => {}) // The error is thrown where the promise is awaited.
    else await stored.then(() => this.#tell(1))
    if (isSmall) await this.#packer.sendFull()
    return { mark, atMs, sha256, bytes }
  }

  async flush(): Promise<void> {
    await this.#sending.gate.run(() => this.#packer.flush())
  }

  placeOf({ sha256 }: Hashed): Promise<StoredContent> | undefined {
    return this.#stored.get(sha256)
  }

  #store(content: ObjectContent): Promise<StoredContent> {
    const { sha256, bytes } = content
    const stored =
      bytes <= SMALL_BYTES ? this.#packer.add(content) : this.#write(content).then((object) => ({ object }))
    const noted = stored.then((place) => {
      this.#sending.sent.set(sha256, place)
      return place
    })
    noted.catch(() => {}) // The error is thrown where the promise is awaited.
    this.#stored.set(sha256, noted)
    return noted
  }

  /** A new object never gets the name of a deleted one: the store may execute the deletion late. */
  async #write(content: ObjectContent): Promise<string> {
    const { manifest, prefix, objects } = this.#sending
    const object = `${manifest.owner}/${manifest.revision}-${content.sha256}`
    await objects.write(`${prefix}${object}`, content)
    return object
  }

  #done(known: Hashed): Hashed {
    this.#tell(1)
    return known
  }

  #tell(more: number): void {
    this.#progress.stored += more
    this.#sending.onProgress({ ...this.#progress })
  }
}

/** If files still use less than this part of a packed object, their contents are sent again and the object is dropped. */
const LEAST_USED = 0.5

function* storedContents(
  scanned: readonly ScannedFile[],
  { manifest, sent }: Sending,
): Generator<[string, Promise<StoredContent>]> {
  const paths = new Set(scanned.map(({ path }) => path))
  const used = new Map<string, number>()
  const places = new Map<string, StoredContent>()
  for (const { path, sha256, bytes, object, packed } of manifest.files) {
    if (places.has(sha256) || !paths.has(path)) continue
    places.set(sha256, { object, ...(packed && { packed }) })
    used.set(object, (used.get(object) ?? 0) + bytes)
  }
  for (const [sha256, place] of places) {
    const { object, packed } = place
    if (!packed || (used.get(object) ?? 0) >= packed.of * LEAST_USED) yield [sha256, Promise.resolve(place)]
  }
  for (const [sha256, place] of sent) yield [sha256, Promise.resolve(place)]
}

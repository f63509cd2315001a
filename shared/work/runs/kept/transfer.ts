import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, type FileHandle, mkdir, open, readlink, realpath, symlink, utimes } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { openFile, readUpTo } from '../../../agent/tools/workspace/file.ts'
import { ignoring, isUnreadable, makeWorkspace } from '../../../agent/tools/workspace/workspace.ts'
import { AppError } from '../../../kernel/errors.ts'
import { contentOf, readAll } from '../../../platform/objects/content.ts'
import type { ObjectContent, Objects } from '../../../platform/objects/port.ts'
import type { Gate } from './gate.ts'
import type { FolderContent, KeptFile } from './manifest.ts'
import { bytesOf, placeOf } from './path-bytes.ts'

/** A file up to this size stays in memory, so that exactly the hashed content is sent. */
const IN_MEMORY_BYTES = 2 * 1024 * 1024

/**
 * Reads a file of a folder; `undefined` when the file was removed or replaced by something else. If a folder was replaced by a link
 * that points outside, the link is not followed.
 */
export async function readContent(
  root: string,
  path: string,
  onProgress: () => void = () => {},
): Promise<ObjectContent | undefined> {
  try {
    const handle = await openKept(root, path)
    try {
      const { size } = await handle.stat()
      if (size <= IN_MEMORY_BYTES) return contentOf(await readUpTo(handle, size))
      return await largeContent(handle, { root, path, onProgress })
    } finally {
      await handle.close()
    }
  } catch (cause) {
    if (cause instanceof AppError || isGone(cause)) return undefined
    throw cause
  }
}

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

/** The tools do not support names that are not UTF-8: for such a file the opened file itself is checked to be inside the folder. */
async function openKept(root: string, path: string): Promise<FileHandle> {
  const place = placeOf(root, path)
  if (typeof place === 'string') return openFile(root, path)
  const handle = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const opened = await ignoring(isUnreadable, readlink(`/proc/self/fd/${handle.fd}`, { encoding: 'buffer' }))
    const inside = Buffer.from(`${await realpath(root)}/`)
    const isKept = (await handle.stat()).isFile() && opened?.subarray(0, inside.length).equals(inside)
    if (!isKept) throw new AppError('not_found', 'no such file')
    return handle
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

/** `ENXIO`: the file was replaced by a socket. */
const isGone = (cause: unknown): boolean =>
  isUnreadable(cause) || (cause instanceof Error && 'code' in cause && cause.code === 'ENXIO')

type Source = { root: string; path: string; onProgress(): void }

async function largeContent(handle: FileHandle, source: Source): Promise<ObjectContent> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of handle.createReadStream({ autoClose: false, start: 0 })) {
    hash.update(chunk as Uint8Array)
    bytes += (chunk as Uint8Array).length
    source.onProgress()
  }
  const sha256 = hash.digest('hex')
  return { bytes, sha256, open: () => Readable.from(unchanged(source, { bytes, sha256 })) }
}

/** Reads the file again. Stops before the last bytes when the file has changed, so that no object is stored under the hash of another content. */
async function* unchanged(
  { root, path, onProgress }: Source,
  { bytes, sha256 }: Pick<ObjectContent, 'bytes' | 'sha256'>,
): AsyncGenerator<Uint8Array> {
  const handle = await openKept(root, path)
  try {
    const hash = createHash('sha256')
    let last: Uint8Array | undefined
    for await (const chunk of handle.createReadStream({ autoClose: false, start: 0, end: bytes - 1 })) {
      if (last) yield last
      last = chunk as Uint8Array
      hash.update(last)
      onProgress()
    }
    if (hash.digest('hex') !== sha256) throw new Error('the file has changed while it was sent')
    if (last) yield last
  } finally {
    await handle.close()
  }
}

type Fetching = { objects: Pick<Objects, 'find'>; keyOf(object: string): string; gate: Gate }

/** Creates a folder at `root`, which must not exist, with the content of a manifest. The hash of each file is checked. */
export async function fetchContent(root: string, content: FolderContent, fetching: Fetching): Promise<void> {
  await makeWorkspace(root)
  for (const { path } of content.folders) await mkdir(placeOf(root, path), { mode: 0o700 })
  const [alone, packed] = [content.files.filter((file) => !file.packed), content.files.filter((file) => file.packed)]
  await fetching.gate.each(alone, (file) => fetchFile(root, file, fetching))
  const packs = Map.groupBy(packed, ({ object }) => object)
  await fetching.gate.each(packs, ([object, files]) => fetchPack(root, { object, files }, fetching))
  for (const { path, target } of content.links) await symlink(bytesOf(target), placeOf(root, path))
  for (const { path, mode } of content.folders.toReversed()) await chmod(placeOf(root, path), mode)
}

async function fetchFile(root: string, file: KeptFile, { objects, keyOf }: Fetching): Promise<void> {
  const found = await objects.find(keyOf(file.object))
  if (!found) throw missing(file)
  await makeFile(root, file, found.body)
}

/** The largest packed object that is read: an object has at most 1 MiB and a few small files. */
const MAX_PACK_BYTES = 16 * 1024 * 1024

type Pack = { object: string; files: readonly KeptFile[] }

async function fetchPack(root: string, { object, files }: Pack, { objects, keyOf }: Fetching): Promise<void> {
  const found = await objects.find(keyOf(object))
  if (!found && files[0]) throw missing(files[0])
  const content = found ? await readAll(found.body, MAX_PACK_BYTES) : Buffer.alloc(0)
  for (const file of files) {
    const { at = 0 } = file.packed ?? {}
    await makeFile(root, file, [content.subarray(at, at + file.bytes)])
  }
}

const missing = ({ path }: KeptFile) => new Error(`the object of ${JSON.stringify(path)} is missing in the store`)

async function makeFile(root: string, file: KeptFile, body: AsyncIterable<Uint8Array> | Uint8Array[]): Promise<void> {
  const target = placeOf(root, file.path)
  const hash = createHash('sha256')
  const handle = await open(target, 'wx', file.mode & 0o777)
  try {
    await handle.writeFile(hashed(body, hash))
    if (hash.digest('hex') !== file.sha256) throw new Error(`the object of ${JSON.stringify(file.path)} is damaged`)
    await handle.chmod(file.mode)
  } finally {
    await handle.close()
  }
  const at = timeOf(file.mtimeMs)
  await utimes(target, at, at)
}

/**
 * The time as `utimes` takes it, in seconds. Half a microsecond is added, so that a fraction which is cut off does not lose a millisecond. It is a text,
 * because `utimes` replaces a negative number by the present time.
 */
const timeOf = (mtimeMs: number): string => String((mtimeMs % 1_000 === 0 ? mtimeMs : mtimeMs + 0.0005) / 1_000)

async function* hashed(body: AsyncIterable<Uint8Array> | Uint8Array[], hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    hash.update(chunk)
    yield chunk
  }
}

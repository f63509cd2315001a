import { createHash, type Hash } from 'node:crypto'
import { chmod, type FileHandle, mkdir, open, symlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { openFile, readUpTo } from '../../../agent/tools/workspace/file.ts'
import { isUnreadable, makeWorkspace } from '../../../agent/tools/workspace/workspace.ts'
import { AppError } from '../../../kernel/errors.ts'
import { contentOf } from '../../../platform/objects/content.ts'
import type { ObjectContent, Objects } from '../../../platform/objects/port.ts'
import type { Gate } from './gate.ts'
import type { FolderContent, KeptFile } from './manifest.ts'

/** A file up to this size is sent as it was when it was hashed. */
const IN_MEMORY_BYTES = 2 * 1024 * 1024

/**
 * Reads a file of a folder; `undefined` when it is not there any more, or has become something else. A link that has taken the place of
 * a folder is not followed out.
 */
export async function readContent(root: string, path: string): Promise<ObjectContent | undefined> {
  try {
    const handle = await openFile(root, path)
    try {
      const { size } = await handle.stat()
      return size <= IN_MEMORY_BYTES ? contentOf(await readUpTo(handle, size)) : await largeContent(handle, root, path)
    } finally {
      await handle.close()
    }
  } catch (cause) {
    if (cause instanceof AppError || isGone(cause)) return undefined
    throw cause
  }
}

/** `ENXIO`: a socket has taken its place. */
const isGone = (cause: unknown): boolean =>
  isUnreadable(cause) || (cause instanceof Error && 'code' in cause && cause.code === 'ENXIO')

async function largeContent(handle: FileHandle, root: string, path: string): Promise<ObjectContent> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of handle.createReadStream({ autoClose: false, start: 0 })) {
    hash.update(chunk as Uint8Array)
    bytes += (chunk as Uint8Array).length
  }
  const sha256 = hash.digest('hex')
  return { bytes, sha256, open: () => Readable.from(unchanged(root, path, { bytes, sha256 })) }
}

/** Reads the file again. Breaks off before its last bytes when it has changed, so that no object gets the name of another content. */
async function* unchanged(
  root: string,
  path: string,
  { bytes, sha256 }: Pick<ObjectContent, 'bytes' | 'sha256'>,
): AsyncGenerator<Uint8Array> {
  const handle = await openFile(root, path)
  try {
    const hash = createHash('sha256')
    let last: Uint8Array | undefined
    for await (const chunk of handle.createReadStream({ autoClose: false, start: 0, end: bytes - 1 })) {
      if (last) yield last
      last = chunk as Uint8Array
      hash.update(last)
    }
    if (hash.digest('hex') !== sha256) throw new Error('the file has changed while it was sent')
    if (last) yield last
  } finally {
    await handle.close()
  }
}

type Fetching = { objects: Pick<Objects, 'find'>; keyOf(file: KeptFile): string; gate: Gate }

/** Makes a folder at `root`, where there is nothing, with what a manifest lists. Each file is checked by its hash. */
export async function fetchContent(root: string, content: FolderContent, fetching: Fetching): Promise<void> {
  await makeWorkspace(root)
  for (const { path } of content.folders) await mkdir(join(root, path), { mode: 0o700 })
  await fetching.gate.each(content.files, (file) => fetchFile(join(root, file.path), file, fetching))
  for (const { path, target } of content.links) await symlink(target, join(root, path))
  for (const { path, mode } of content.folders.toReversed()) await chmod(join(root, path), mode)
}

async function fetchFile(target: string, file: KeptFile, { objects, keyOf }: Fetching): Promise<void> {
  const found = await objects.find(keyOf(file))
  if (!found) throw new Error(`the object of ${JSON.stringify(file.path)} is missing in the store`)
  const hash = createHash('sha256')
  const handle = await open(target, 'wx', file.mode)
  try {
    await handle.writeFile(hashed(found.body, hash))
    if (hash.digest('hex') !== file.sha256) throw new Error(`the object of ${JSON.stringify(file.path)} is damaged`)
    await handle.chmod(file.mode)
  } finally {
    await handle.close()
  }
  const at = file.mtimeMs / 1_000
  await utimes(target, at, at)
}

async function* hashed(body: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    hash.update(chunk)
    yield chunk
  }
}

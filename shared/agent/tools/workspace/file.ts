import { randomBytes } from 'node:crypto'
import type { Stats } from 'node:fs'
import { constants, type FileHandle, lstat, mkdir, open, readlink, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { TextDecoder } from 'node:util'
import { invalidRequest, notFound } from '../../../kernel/errors.ts'
import { quoted } from '../../../kernel/text.ts'
import type { ToolContext } from '../port.ts'
import { ignoring, isAbsent, isInside, locate, makeWorkspace, type Place } from './workspace.ts'

/** The largest file that a tool reads into memory or writes. */
export const FILE_MAX_BYTES = 10 * 1024 * 1024

/** Only the server's user can read workspaces, whatever its umask is. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

/** Opens a regular file of the workspace for reading. The caller closes it. */
export async function openFile(workspace: string, path: string): Promise<FileHandle> {
  const place = await locate(workspace, path)
  if (!place.exists) throw notFound(`${quoted(path)}: no such file.`)
  assertFile(await lstat(place.path), path)
  // O_NONBLOCK: if a FIFO has replaced the file since the check above, open must not wait for a writer.
  const handle = await open(place.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    assertFile(await handle.stat(), path)
    await assertInside(handle, place)
    return handle
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

/** Reads a whole file as text, including a byte order mark. Throws `invalid_request` for a large or binary file. */
export async function readText(workspace: string, path: string): Promise<string> {
  const handle = await openFile(workspace, path)
  try {
    const bytes = await readUpTo(handle, FILE_MAX_BYTES + 1)
    if (bytes.length > FILE_MAX_BYTES)
      throw invalidRequest(`${quoted(path)}: the file is larger than ${FILE_MAX_BYTES} bytes.`)
    return decodeText(bytes, path)
  } finally {
    await handle.close()
  }
}

/** Reads the first `maxBytes` of a file, or all of a shorter one. Bytes appended meanwhile are not read. */
export async function readUpTo(handle: FileHandle, maxBytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(Math.min((await handle.stat()).size, maxBytes))
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return buffer.subarray(0, length)
}

/**
 * Replaces or creates a file atomically: a reader sees either the old content or the new. Throws what `assertMayAct` throws, which is
 * called right before the file is put in place.
 */
export function writeText(place: Writing, path: string, content: string): Promise<void> {
  const bytes = Buffer.from(content)
  if (bytes.length > FILE_MAX_BYTES)
    throw invalidRequest(`${quoted(path)}: more than ${FILE_MAX_BYTES} bytes cannot be written.`)
  return writeBytes(place, path, bytes)
}

type Writing = Pick<ToolContext, 'workspace' | 'assertMayAct'>

/** The same as `writeText`, for bytes. */
export async function writeBytes({ workspace, assertMayAct }: Writing, path: string, bytes: Uint8Array): Promise<void> {
  await makeWorkspace(workspace)
  const place = await locate(workspace, path)
  const before = place.exists ? await lstat(place.path) : undefined
  if (before !== undefined) assertFile(before, path)
  await mkdir(dirname(place.path), { recursive: true, mode: FOLDER_MODE })
  const temporary = join(dirname(place.path), `.${randomBytes(8).toString('hex')}.tmp`)
  try {
    await writeNew({ ...place, path: temporary }, bytes, before && before.mode & 0o777)
    assertMayAct()
    await rename(temporary, place.path)
  } catch (cause) {
    await rm(temporary, { force: true })
    throw cause
  }
}

/**
 * Creates the temporary file and checks that it lies inside the workspace. Its random name makes the later rename safe: if the
 * folder is swapped in between, the new folder holds no file of that name and the rename fails.
 */
async function writeNew(place: Place, bytes: Uint8Array, mode: number | undefined): Promise<void> {
  const handle = await open(place.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE)
  try {
    await assertInside(handle, place)
    await handle.writeFile(bytes)
    if (mode !== undefined) await handle.chmod(mode)
  } finally {
    await handle.close()
  }
}

/** Checks the opened file itself, because a folder on its path may have been swapped for a symbolic link since `locate`. */
async function assertInside(handle: FileHandle, place: Place): Promise<void> {
  if (isInside(place.root, await openedPath(handle, place.path))) return
  throw invalidRequest('The path was changed while it was being opened. Try again.')
}

/** The path of an opened file. Linux knows it for sure; on other systems the path is resolved again. */
const openedPath = async (handle: FileHandle, path: string): Promise<string> =>
  (await ignoring(isAbsent, readlink(`/proc/self/fd/${handle.fd}`))) ?? realpath(path)

function assertFile(stats: Stats, path: string): void {
  if (stats.isFile()) return
  if (stats.isDirectory()) throw invalidRequest(`${quoted(path)}: this is a folder, not a file.`)
  throw invalidRequest(`${quoted(path)}: this is a device, pipe or socket, not a regular file.`)
}

function decodeText(bytes: Uint8Array, path: string): string {
  try {
    return textDecoder(bytes.subarray(0, 8_192), path).decode(bytes)
  } catch (cause) {
    throw cause instanceof TypeError ? binaryFile(path) : cause
  }
}

/** A strict UTF-8 decoder for the file that starts with `head`. Throws `invalid_request` when `head` holds a NUL byte. */
export function textDecoder(head: Uint8Array, path: string): TextDecoder {
  if (head.includes(0)) throw binaryFile(path)
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
}

export const binaryFile = (path: string) =>
  invalidRequest(`${quoted(path)}: this is a binary file or not UTF-8 text; it cannot be shown or edited as text.`)

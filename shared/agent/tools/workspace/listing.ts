import { createHash } from 'node:crypto'
import { AppError } from '../../../kernel/errors.ts'
import { openFile } from './file.ts'
import { startBudget, walk } from './walk.ts'
import { ignoring, isAbsent } from './workspace.ts'

const LIMITS = { entries: 20_000, wallMs: 500 }
/** A page ends after files of this many bytes, which must be read for their hashes while the caller waits. */
const PAGE_BYTES = 32 * 1024 * 1024
/** A piece is sent in one message, in which base64 makes it a third longer. */
const PIECE_BYTES = 128 * 1024

type Listed = { path: string; bytes: number; sha256: string; modified_ms: number }

/** Lists the regular files of a folder by path, after `after`. Links, and files that a search skips, are left out. */
export async function listFolder(
  workspace: string,
  { limit, after = '' }: { limit: number; after?: string },
): Promise<{ files: Listed[]; has_more: boolean }> {
  const paths: string[] = []
  for await (const path of walk(workspace, startBudget(LIMITS, NEVER))) if (path > after) paths.push(path)
  paths.sort((a, b) => (a < b ? -1 : 1))
  const files: Listed[] = []
  let [taken, bytes] = [0, 0]
  for (; taken < paths.length && files.length < limit && bytes < PAGE_BYTES; taken++) {
    const file = await listed(workspace, paths[taken] ?? '')
    if (file) files.push(file)
    bytes += file?.bytes ?? 0
  }
  return { files, has_more: taken < paths.length }
}

/** Reads a part of a file. Throws `invalid_request` for a path that leaves the folder, and `not_found` where there is no file. */
export async function readPiece(workspace: string, { path, from }: { path: string; from: number }) {
  await using handle = await openFile(workspace, path)
  const { size: bytes, mtimeMs } = await handle.stat()
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES, from)
  return { base64: buffer.toString('base64', 0, bytesRead), bytes, modified_ms: Math.round(mtimeMs) }
}

const NEVER = new AbortController().signal

/** `undefined` for a file that was removed or replaced meanwhile, or cannot be read. */
async function listed(workspace: string, path: string): Promise<Listed | undefined> {
  const handle = await ignoring(isGone, openFile(workspace, path))
  if (!handle) return undefined
  await using opened = handle
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of opened.createReadStream({ autoClose: false, highWaterMark: 1024 * 1024 })) {
    hash.update(chunk as Buffer)
    bytes += (chunk as Buffer).length
  }
  const { mtimeMs } = await opened.stat()
  return { path, bytes, sha256: hash.digest('hex'), modified_ms: Math.round(mtimeMs) }
}

const isGone = (cause: unknown): boolean =>
  cause instanceof AppError || isAbsent(cause) || (cause instanceof Error && 'code' in cause)

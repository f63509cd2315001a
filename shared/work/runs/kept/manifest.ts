import { relativePath } from '../../../agent/tools/workspace/workspace.ts'
import { parseJson } from '../../../kernel/json.ts'
import { shownPath } from './path-bytes.ts'

/** `object` is the name of the stored object with the content. `packed`: where the content begins in this object, and the length of the object. */
export type StoredContent = { object: string; packed?: { at: number; of: number } }

/** Paths are relative to the folder. Bytes that are not UTF-8 are escaped (`path-bytes.ts`). */
export type KeptFile = StoredContent & { path: string; mode: number; mtimeMs: number; bytes: number; sha256: string }
export type KeptSubfolder = { path: string; mode: number }
export type KeptLink = { path: string; target: string }

/** The content of a folder. A subfolder is listed before its own content. */
export type FolderContent = {
  folders: readonly KeptSubfolder[]
  files: readonly KeptFile[]
  links: readonly KeptLink[]
}

/** The object that lists the content of a folder. `owner` is the process that wrote it, and `revision` counts its writes. */
export type Manifest = FolderContent & { owner: string; revision: number; tenant: string; scope: string }

export const EMPTY_CONTENT: FolderContent = { folders: [], files: [], links: [] }

/** The largest manifest that is read: 10,000 entries take 4 MB. */
export const MAX_MANIFEST_BYTES = 64 * 1024 * 1024

/** Releases that read only format 1 support neither packed contents nor names that are not UTF-8. */
export const writeManifest = (manifest: Manifest): string => {
  const { folders, files, links } = manifest
  const isPlain = [...folders, ...files, ...links].every((each) => each.path.isWellFormed() && !('packed' in each))
  return JSON.stringify({ format: isPlain ? 1 : 2, ...manifest })
}

const FORMATS: readonly unknown[] = [1, 2]

/** Throws when the text is not a manifest, or names a path outside of its folder. */
export function readManifest(text: string): Manifest {
  const manifest = parseJson(text) as (Manifest & { format: unknown }) | undefined
  if (!manifest || !FORMATS.includes(manifest.format))
    throw new Error('the manifest of the folder has a format that this version does not know')
  const { owner, revision, tenant, scope, folders, files, links } = manifest
  for (const { path } of [...folders, ...files, ...links]) assertInside(path)
  for (const { path, target } of links) if (!isLinkInside(path, target)) throw outside(path)
  if (!files.every(isStored)) throw new Error('the manifest names a wrong object')
  return { owner, revision, tenant, scope, folders, files, links }
}

const isStored = ({ object, bytes, packed }: KeptFile): boolean =>
  OBJECT.test(object) && (!packed || (packed.at >= 0 && packed.at + bytes <= packed.of))

const OBJECT = /^[0-9a-f]{16}\/\d+-[0-9a-f]{64}$/

/** Whether two folders have the same content; the names of their objects may differ. */
export const isSameContent = (one: FolderContent, other: FolderContent): boolean =>
  JSON.stringify(comparable(one)) === JSON.stringify(comparable(other))

const comparable = ({ folders, files, links }: FolderContent) => [
  folders.map(({ path, mode }) => [path, mode]).toSorted(byPath),
  files.map(({ path, mode, mtimeMs, sha256 }) => [path, mode, mtimeMs, sha256]).toSorted(byPath),
  links.map(({ path, target }) => [path, target]).toSorted(byPath),
]

const byPath = ([one]: (string | number)[], [other]: (string | number)[]): number =>
  String(one) < String(other) ? -1 : 1

/** Whether the tools accept the path, in their normalised spelling. They do not support names that are not UTF-8. */
export function isPathInside(path: string): boolean {
  const shown = shownPath(path)
  try {
    return relativePath(shown) === shown && shown !== '.'
  } catch {
    return false
  }
}

/** Whether the target of a symbolic link is inside the folder. Only its text is checked, not the disk. */
export function isLinkInside(path: string, target: string): boolean {
  if (target.startsWith('/') || target.includes('\0')) return false
  let depth = path.split('/').length - 1
  for (const name of target.split('/')) {
    if (name === '..') depth -= 1
    else if (name !== '' && name !== '.') depth += 1
    if (depth < 0) return false
  }
  return true
}

function assertInside(path: string): void {
  if (!isPathInside(path)) throw outside(path)
}

const outside = (path: string) => new Error(`the manifest names ${JSON.stringify(path)}, which is not in the folder`)

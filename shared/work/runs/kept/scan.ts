import { lstat, readdir, readlink } from 'node:fs/promises'
import { ignoring, isAbsent, isUnreadable } from '../../../agent/tools/workspace/workspace.ts'
import { isLinkInside, isPathInside, type KeptLink, type KeptSubfolder } from './manifest.ts'
import { placeOf, textOf } from './path-bytes.ts'

/** `mark` changes whenever the file system reports a change of the file. */
export type ScannedFile = { path: string; mode: number; mtimeMs: number; ctimeMs: number; bytes: number; mark: string }

export type Scan = {
  folders: KeptSubfolder[]
  files: ScannedFile[]
  links: KeptLink[]
  /** Entries that cannot be kept: links that point outside, sockets and other special files, names that the tools refuse, and unreadable files. */
  leftOut: string[]
}

export type ScanLimits = {
  maxBytes: number
  /** Counts files, folders and links. */
  maxFiles: number
}

/** The folder has more files or bytes than may be kept. The message is written for the user. */
export class TooMuch extends Error {}

/** A file system answers several parallel requests in little more time than one. */
const AT_ONCE = 64

/** Lists the content of a folder, without following links; `undefined` when there is no folder. Throws `TooMuch`. */
export async function scanFolder(root: string, limits: ScanLimits): Promise<Scan | undefined> {
  if (!(await ignoring(isUnreadable, lstat(root)))) return undefined
  const scan: Scan = { folders: [], files: [], links: [], leftOut: [] }
  const pending = ['']
  const seen = { bytes: 0, files: 0 }
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const names = await namesIn(scan, root, folder)
    seen.files += names.length
    if (seen.files > limits.maxFiles) throw new TooMuch(`the folder holds more than ${limits.maxFiles} files`)
    for (let at = 0; at < names.length; at += AT_ONCE) {
      const paths = names.slice(at, at + AT_ONCE).map((name) => (folder === '' ? name : `${folder}/${name}`))
      for (const [i, added] of (await Promise.all(paths.map((path) => addEntry(scan, root, path)))).entries()) {
        if (added === 'folder') pending.push(paths[i] ?? '')
        else seen.bytes += added
      }
    }
    if (seen.bytes > limits.maxBytes) throw new TooMuch(`the folder holds more than ${limits.maxBytes} bytes`)
  }
  return scan
}

async function namesIn({ leftOut }: Scan, root: string, folder: string): Promise<string[]> {
  const names = await readable(readdir(placeOf(root, folder), { encoding: 'buffer' }))
  if (names === 'refused') leftOut.push(folder === '' ? '.' : folder)
  return Array.isArray(names) ? names.map(textOf) : []
}

/** `undefined`: the entry was removed meanwhile. */
const readable = <T>(reading: Promise<T>): Promise<T | 'refused' | undefined> =>
  ignoring(isGone, reading).catch((cause: unknown) => {
    if (!isUnreadable(cause)) throw cause
    return 'refused'
  })

/** `ENOTDIR`: a file has taken the place of a folder. */
const isGone = (cause: unknown): boolean =>
  isAbsent(cause) || (cause instanceof Error && 'code' in cause && cause.code === 'ENOTDIR')

/** All mode bits: the permissions, set-user-ID, set-group-ID and sticky. */
const PERMISSIONS = 0o7777

/** Returns the size of the added entry in bytes, or that it is a folder. */
async function addEntry(scan: Scan, root: string, path: string): Promise<number | 'folder'> {
  const place = placeOf(root, path)
  const stats = await readable(lstat(place))
  if (stats === 'refused') scan.leftOut.push(path)
  if (stats === undefined || stats === 'refused') return 0
  const mode = stats.mode & PERMISSIONS
  if (isPathInside(path) && stats.isDirectory()) {
    scan.folders.push({ path, mode })
    return 'folder'
  }
  if (isPathInside(path) && stats.isFile()) {
    const { size: bytes, mtimeMs, ctimeMs, ino } = stats
    const mark = `${ino} ${bytes} ${mtimeMs} ${ctimeMs}`
    scan.files.push({ path, mode, mtimeMs: Math.floor(mtimeMs), ctimeMs, bytes, mark })
    return bytes
  }
  const target = stats.isSymbolicLink() ? await targetOf(place) : undefined
  if (target !== undefined && isPathInside(path) && isLinkInside(path, target)) scan.links.push({ path, target })
  else scan.leftOut.push(path)
  return 0
}

async function targetOf(link: string | Buffer): Promise<string | undefined> {
  const target = await readable(readlink(link, { encoding: 'buffer' }))
  return target instanceof Buffer ? textOf(target) : undefined
}

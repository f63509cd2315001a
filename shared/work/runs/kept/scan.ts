import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoring, isUnreadable } from '../../../agent/tools/workspace/workspace.ts'
import { isLinkInside, isPathInside, type KeptLink, type KeptSubfolder } from './manifest.ts'

/** `mark` changes when the file does, as far as the file system tells. */
export type ScannedFile = { path: string; mode: number; mtimeMs: number; ctimeMs: number; bytes: number; mark: string }

export type Scan = {
  folders: KeptSubfolder[]
  files: ScannedFile[]
  links: KeptLink[]
  /** What cannot be kept: links that lead out, sockets and the like, and names that the tools refuse. */
  leftOut: string[]
}

export type ScanLimits = {
  maxBytes: number
  /** Files, folders and links. */
  maxFiles: number
}

/** The folder holds more than is kept. The message is written for the user. */
export class TooMuch extends Error {}

/** Lists what a folder holds, without following links; `undefined` when there is no folder. Throws `TooMuch`. */
export async function scanFolder(root: string, limits: ScanLimits): Promise<Scan | undefined> {
  if (!(await ignoring(isUnreadable, lstat(root)))) return undefined
  const scan: Scan = { folders: [], files: [], links: [], leftOut: [] }
  const pending = ['']
  const seen = { bytes: 0, files: 0 }
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const names = (await ignoring(isUnreadable, readdir(join(root, folder)))) ?? []
    seen.files += names.length
    if (seen.files > limits.maxFiles) throw new TooMuch(`the folder holds more than ${limits.maxFiles} files`)
    for (const name of names) {
      const path = folder === '' ? name : `${folder}/${name}`
      const added = await addEntry(scan, root, path)
      if (added === 'folder') pending.push(path)
      else seen.bytes += added
    }
    if (seen.bytes > limits.maxBytes) throw new TooMuch(`the folder holds more than ${limits.maxBytes} bytes`)
  }
  return scan
}

/** Returns the bytes of what was added, or that it is a folder. */
async function addEntry(scan: Scan, root: string, path: string): Promise<number | 'folder'> {
  const stats = await ignoring(isUnreadable, lstat(join(root, path)))
  if (!stats) return 0 // It was removed meanwhile.
  const mode = stats.mode & 0o777
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
  const target = stats.isSymbolicLink() ? await ignoring(isUnreadable, readlink(join(root, path))) : undefined
  if (target !== undefined && isPathInside(path) && isLinkInside(path, target)) scan.links.push({ path, target })
  else scan.leftOut.push(path)
  return 0
}

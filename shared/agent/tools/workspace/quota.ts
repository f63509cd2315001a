import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { invalidRequest } from '../../../kernel/errors.ts'
import { ignoring, isUnreadable, relativePath } from './workspace.ts'

export type QuotaLimits = {
  maxBytes: number
  /** The most files and folders. */
  maxFiles: number
}

/** Limits the content of one workspace (D1.3 WORKSPACE_QUOTA_MB). */
export type Quota = {
  /** Call it before `bytes` are written to `path`, one call at a time for a workspace. Throws `invalid_request` above a limit. */
  admit(workspace: string, path: string, bytes: number): Promise<void>
}

const MAX_FILES = 10_000
/** How long a measurement is used. Writes of our tools are added to it, but changes by commands and MCP servers are only seen by the next one. */
const FRESH_MS = 1_000
const MAX_WORKSPACES = 1_000

type Usage = { bytes: number; files: number }

export function createQuota({ maxBytes, maxFiles = MAX_FILES }: Partial<QuotaLimits> & { maxBytes: number }): Quota {
  const measured = new LRUCache<string, Usage>({ max: MAX_WORKSPACES, ttl: FRESH_MS })
  return {
    async admit(workspace, path, bytes) {
      const usage = measured.get(workspace) ?? (await measure(workspace, maxFiles))
      const relative = relativePath(path)
      const before = await sizeOf(join(workspace, relative))
      const moreBytes = bytes - (before ?? 0)
      const moreFiles = before === undefined ? relative.split('/').length : 0
      if (moreBytes > 0 && usage.bytes + moreBytes > maxBytes) throw tooManyBytes(maxBytes)
      if (moreFiles > 0 && usage.files + moreFiles > maxFiles) throw tooManyFiles(maxFiles)
      measured.set(
        workspace,
        { bytes: usage.bytes + moreBytes, files: usage.files + moreFiles },
        { noUpdateTTL: measured.has(workspace) },
      )
    },
  }
}

/** Stops counting above `maxFiles`. Does not follow symbolic links. */
async function measure(workspace: string, maxFiles: number): Promise<Usage> {
  const usage = { bytes: 0, files: 0 }
  const folders = [workspace]
  for (let folder = folders.pop(); folder !== undefined && usage.files <= maxFiles; folder = folders.pop()) {
    const entries = await ignoring(isUnreadable, readdir(folder, { withFileTypes: true }))
    usage.files += entries?.length ?? 0
    for (const entry of entries ?? []) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else usage.bytes += (await sizeOf(path)) ?? 0
    }
  }
  return usage
}

const sizeOf = async (path: string): Promise<number | undefined> => (await ignoring(isUnreadable, lstat(path)))?.size

const tooManyBytes = (maxBytes: number) =>
  invalidRequest(`The workspace may hold ${maxBytes} bytes and would hold more: write less, or shorten other files.`)

const tooManyFiles = (maxFiles: number) =>
  invalidRequest(
    `The workspace may hold ${maxFiles} files and folders and would hold more: write to the files that exist.`,
  )

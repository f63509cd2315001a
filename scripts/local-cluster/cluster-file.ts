import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Member } from './member.ts'

export type ClusterFile = {
  path: string
  /** Replaces the file atomically: a reader sees the old content or the new one. */
  write(processes: readonly Member[]): Promise<void>
  remove(): Promise<void>
}

export type ServiceUrls = { redis_url: string; mongodb_url: string }

/**
 * Creates the writer of `DATA_DIR/cluster.json` (D1.1). The addresses are written without users and passwords, since programs of tools
 * can read the file. Writes happen in the order of the calls.
 */
export function createClusterFile(dataDir: string, urls: ServiceUrls): ClusterFile {
  const path = join(dataDir, 'cluster.json')
  const { redis_url, mongodb_url } = urls
  const shown = { redis_url: withoutUser(redis_url), mongodb_url: withoutUser(mongodb_url) }
  let last = Promise.resolve()
  const inTurn = (work: () => Promise<void>) => {
    last = last.then(work, work) // A failed write rejects for its own caller only.
    return last
  }
  return {
    path,
    write: (processes) =>
      inTurn(async () => {
        const text = JSON.stringify({ processes, ...shown }, null, 2)
        await rm(`${path}.new`, { force: true }) // The mode is for a new file only.
        await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 })
        await rename(`${path}.new`, path)
      }),
    remove: () => inTurn(() => rm(path, { force: true })),
  }
}

const withoutUser = (url: string): string => url.replace(/\/\/.*@/, '//')

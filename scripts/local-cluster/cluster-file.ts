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

/** Creates the writer of `DATA_DIR/cluster.json` (D1.1), for its owner only: the addresses have passwords. Writes happen in the order of the calls. */
export function createClusterFile(dataDir: string, urls: ServiceUrls): ClusterFile {
  const path = join(dataDir, 'cluster.json')
  let last = Promise.resolve()
  const inTurn = (work: () => Promise<void>) => {
    last = last.then(work, work) // A failed write rejects for its own caller only.
    return last
  }
  return {
    path,
    write: (processes) =>
      inTurn(async () => {
        const text = JSON.stringify({ processes, ...urls }, null, 2)
        await rm(`${path}.new`, { force: true }) // The mode is for a new file only.
        await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 })
        await rename(`${path}.new`, path)
      }),
    remove: () => inTurn(() => rm(path, { force: true })),
  }
}

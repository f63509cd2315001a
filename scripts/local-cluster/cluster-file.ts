import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Member } from './member.ts'

export type ClusterFile = {
  path: string
  /** Whoever reads the file sees it whole, as it was or as it is. */
  write(processes: readonly Member[]): Promise<void>
  remove(): Promise<void>
}

export type ServiceUrls = { redis_url: string; mongodb_url: string }

/** `DATA_DIR/cluster.json` (D1.1). */
export function createClusterFile(dataDir: string, urls: ServiceUrls): ClusterFile {
  const path = join(dataDir, 'cluster.json')
  let last = Promise.resolve()
  const inTurn = (work: () => Promise<void>) => {
    last = last.then(work, work) // A write that failed has told its own caller.
    return last
  }
  return {
    path,
    write: (processes) =>
      inTurn(async () => {
        const text = JSON.stringify({ processes, ...urls }, null, 2)
        await mkdir(dataDir, { recursive: true })
        await writeFile(`${path}.new`, `${text}\n`)
        await rename(`${path}.new`, path)
      }),
    remove: () => inTurn(() => rm(path, { force: true })),
  }
}

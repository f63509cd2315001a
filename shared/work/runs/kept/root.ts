import { join } from 'node:path'
import { fileSystemTime, foldersIn, isAbandoned, markWorkspaces } from '../../../agent/tools/workspace/sweep.ts'
import { makeWorkspace, removeWorkspace } from '../../../agent/tools/workspace/workspace.ts'
import { newToken } from '../../../kernel/ids.ts'

const OF_PROCESS = /^process-[0-9a-f]{16}$/

/** Makes the folder of this process in the one that is for its machine. */
export async function openRoot(parent: string): Promise<string> {
  const root = join(parent, `process-${newToken()}`)
  await makeWorkspace(root)
  return root
}

/** Shows other processes of the machine that this one lives. */
export async function markRoot(root: string): Promise<void> {
  const now = await fileSystemTime(root)
  if (now) await markWorkspaces([root], now)
}

/** Removes the folders of processes that have not shown for an hour that they live. */
export async function sweepRoots(parent: string): Promise<void> {
  const now = await fileSystemTime(parent)
  if (!now) return
  for (const name of await foldersIn(parent)) {
    const path = join(parent, name)
    if (OF_PROCESS.test(name) && (await isAbandoned(path, now, 0))) await removeWorkspace(path)
  }
}

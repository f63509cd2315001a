import { once } from '../../../kernel/async/once.ts'
import type { AttachedFile } from '../../../kernel/attachment.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { ReadFile } from '../../providers/shown-files.ts'
import { writeBytes } from './file.ts'
import { locate, makeWorkspace } from './workspace.ts'

/** The most bytes of attached files that a workspace gets; the newest files come first. */
const MAX_BYTES = 50 * 1024 * 1024

type Placing = { workspace(): string; readFile: ReadFile }

/** Returns a function that puts the files of a run's conversation into its workspace, once. */
export function placesFiles(
  messages: () => readonly AttachedFile[],
  { workspace, readFile }: Placing,
): () => Promise<void> {
  const place = once(() => placeFiles(workspace(), messages(), readFile))
  return async () => {
    if (messages().length > 0) await place()
  }
}

/** Puts attached files where tools find them (D47). A file that already exists is left as it is: a tool may have changed it. Throws `unavailable`. */
async function placeFiles(workspace: string, files: readonly AttachedFile[], read: ReadFile): Promise<void> {
  let room = MAX_BYTES
  await makeWorkspace(workspace)
  for (const { path, ...file } of files.toReversed()) {
    room -= file.bytes
    if (path === undefined || room < 0) continue
    try {
      if ((await locate(workspace, path)).exists) continue
      const bytes = await read(file)
      if (bytes) await writeBytes({ workspace, assertMayAct: () => {} }, path, bytes)
    } catch (cause) {
      // A tool has put something else at this path, such as a link that leaves the workspace.
      if (!(cause instanceof AppError) || cause.kind === 'unavailable') throw cause
    }
  }
}

import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { isUnreadable } from './workspace.ts'

/** The limits after which a search stops. */
export type WalkLimits = { entries: number; wallMs: number }

/** The rest of a search's limits. `stopped` is a text that names the limit which ended the search. */
export type Budget = { entries: number; deadline: number; signal: AbortSignal; stopped: string | undefined }

const MAX_DEPTH = 32
/** Longer paths are left out, which limits the cost of matching one. */
const MAX_PATH_CHARS = 1_024
/** Folders with many files that are seldom searched; visited only when the search starts inside. */
const SKIPPED = new Set(['.git', 'node_modules'])

export const startBudget = ({ entries, wallMs }: WalkLimits, signal: AbortSignal): Budget => ({
  entries,
  deadline: performance.now() + wallMs,
  signal,
  stopped: undefined,
})

/**
 * Yields the paths of the regular files below `folder`, relative to it and in no particular order, until the budget is used up.
 * Symbolic links are neither yielded nor followed, so that nothing outside the workspace is read (D5.2).
 */
export async function* walk(folder: string, budget: Budget): AsyncGenerator<string> {
  const pending = [{ path: '', depth: 0 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for await (const entry of entriesOf(join(folder, next.path))) {
      if (isUsedUp(budget)) return
      const path = next.path === '' ? entry.name : `${next.path}/${entry.name}`
      if (path.length > MAX_PATH_CHARS) continue
      if (entry.isFile()) yield path
      else if (entry.isDirectory() && !SKIPPED.has(entry.name) && next.depth < MAX_DEPTH) {
        pending.push({ path, depth: next.depth + 1 })
      }
    }
  }
}

/** Treats a folder that was removed or cannot be read as empty. */
async function* entriesOf(folder: string) {
  try {
    yield* await opendir(folder)
  } catch (cause) {
    if (isUnreadable(cause)) return
    throw cause
  }
}

function isUsedUp(budget: Budget): boolean {
  budget.entries -= 1
  if (budget.entries < 0) budget.stopped ??= 'there are too many files'
  return isOvertime(budget)
}

/** Whether a limit has ended the search; checks the wall time. Throws when the run has ended. */
export function isOvertime(budget: Budget): boolean {
  budget.signal.throwIfAborted()
  if (performance.now() > budget.deadline) budget.stopped ??= 'it took too long'
  return budget.stopped !== undefined
}

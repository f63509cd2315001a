import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { isUnreadable } from './workspace.ts'

/** How far a search goes before it stops and says so. */
export type WalkLimits = { entries: number; wallMs: number }

/** What a search may still use. `stopped` says in words which limit ended it. */
export type Budget = { entries: number; deadline: number; signal: AbortSignal; stopped: string | undefined }

const MAX_DEPTH = 32
/** Longer paths are left out: it bounds what matching one of them can cost. */
const MAX_PATH_CHARS = 1_024
/** Full of files nobody searches for; walked only when the search starts inside. */
const SKIPPED = new Set(['.git', 'node_modules'])

export const startBudget = ({ entries, wallMs }: WalkLimits, signal: AbortSignal): Budget => ({
  entries,
  deadline: performance.now() + wallMs,
  signal,
  stopped: undefined,
})

/**
 * Yields the regular files below `folder` as paths relative to it, in no particular order, until the budget is used up.
 * Symbolic links are neither yielded nor followed, so that nothing outside the workspace is seen (D5.2).
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

/** A folder that vanished or may not be read is left out, as if it were empty. */
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

/** Whether a limit has ended the search, its wall time included. Throws when the run has ended. */
export function isOvertime(budget: Budget): boolean {
  budget.signal.throwIfAborted()
  if (performance.now() > budget.deadline) budget.stopped ??= 'it took too long'
  return budget.stopped !== undefined
}

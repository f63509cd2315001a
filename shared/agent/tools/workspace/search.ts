import { lstat } from 'node:fs/promises'
import { basename } from 'node:path'
import { eventLoop } from '../../../kernel/async/loop-budget.ts'
import { AppError, notFound } from '../../../kernel/errors.ts'
import { quoted, truncate } from '../../../kernel/text.ts'
import { succeed, type ToolContext, type ToolOutcome } from '../port.ts'
import { openFile, readUpTo } from './file.ts'
import type { LinePattern } from './pattern.ts'
import { type Budget, isOvertime, startBudget, walk } from './walk.ts'
import { ignoring, isAbsent, isUnreadable, locate } from './workspace.ts'

export type SearchLimits = {
  /** The most files and folders that a search visits. */
  entries: number
  wallMs: number
  /** The most paths that Glob returns, or lines that Grep returns. */
  matches: number
  /** How many bytes of a file Grep reads. */
  fileBytes: number
}

const LINE_CHARS = 300
const LARGE_BYTES = 128 * 1024

type Search = { path: string; context: ToolContext; limits: SearchLimits }

/** A visited file: its path relative to the workspace, its path relative to the searched folder, and the rest of the budget. */
type Found = { file: string; inFolder: string; budget: Budget }

/**
 * Collects the matches that `findMatches` returns for each file that Read may read. When a limit ends the search, the answer says so.
 */
export async function searchFiles(
  search: Search,
  findMatches: (found: Found) => Promise<string[]>,
): Promise<ToolOutcome> {
  const { limits, context } = search
  const budget = startBudget(limits, context.signal)
  const hits: { file: string; matches: string[] }[] = []
  let left = limits.matches
  for await (const found of visitFiles(search, budget)) {
    if (context.policyOf('Read', { path: found.file }) === 'deny') continue
    const matches = await findMatches(found)
    if (matches.length > 0) hits.push({ file: found.file, matches: matches.slice(0, left) })
    if (matches.length > left) budget.stopped ??= `there are more than ${limits.matches} matches`
    left -= matches.length
    if (budget.stopped !== undefined) break
    await eventLoop.enter()
  }
  const sorted = hits.toSorted((one, other) => (one.file < other.file ? -1 : 1))
  const text = sorted.flatMap(({ matches }) => matches).join('\n') || 'No matches.'
  if (budget.stopped === undefined) return succeed(text)
  return succeed(`${text}\n\n[The search ended early because ${budget.stopped}. Narrow the pattern or the path.]`)
}

async function* visitFiles({ path, context }: Search, budget: Budget): AsyncGenerator<Found> {
  const place = await locateIfExists(context.workspace, path)
  if (place === undefined) return
  const prefix = place.path.slice(place.root.length + 1)
  if ((await lstat(place.path)).isFile()) {
    yield { file: prefix, inFolder: basename(prefix), budget }
    return
  }
  for await (const inFolder of walk(place.path, budget)) {
    yield { file: prefix === '' ? inFolder : `${prefix}/${inFolder}`, inFolder, budget }
  }
}

/** Returns `undefined` for a workspace that does not exist yet, which counts as empty. Throws `not_found` for a missing folder in it. */
async function locateIfExists(workspace: string, path: string) {
  if (!(await ignoring(isAbsent, lstat(workspace)))) return undefined
  const place = await locate(workspace, path)
  if (!place.exists) throw notFound(`${quoted(path)}: no such file or folder.`)
  return place
}

type LineSearch = Omit<Search, 'path'> & { file: string; regex: LinePattern; budget: Budget }

/** Returns the lines of one file that match, as `path:line:text`; at most one more than the limit. */
export async function matchingLines({ file, regex, budget, context, limits }: LineSearch): Promise<string[]> {
  const text = await textOf(context.workspace, file, limits.fileBytes)
  const matchesLine = createLineTest(regex, budget)
  const matches: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (await matchesLine(line)) matches.push(`${file}:${index + 1}:${truncate(line.trimEnd(), LINE_CHARS)}`)
    if (matches.length > limits.matches || budget.stopped !== undefined) break
  }
  return matches
}

/** Tests a line. One that is too long for the engine is tested in pieces that overlap by half. */
function createLineTest(regex: LinePattern, budget: Budget): (line: string) => Promise<boolean> {
  return async (line) => {
    for (let start = 0; !isOvertime(budget); start += Math.ceil(regex.pieceChars / 2)) {
      await eventLoop.enter()
      if (regex.test(line.slice(start, start + regex.pieceChars))) return true
      if (start + regex.pieceChars >= line.length) return false
    }
    return false
  }
}

/** Returns an empty text for a binary file and for one that was removed or cannot be read. */
async function textOf(workspace: string, file: string, maxBytes: number): Promise<string> {
  try {
    const handle = await openFile(workspace, file)
    try {
      const bytes = await readUpTo(handle, maxBytes)
      if (bytes.length > LARGE_BYTES) await eventLoop.enter() // Decoding and splitting a large file takes milliseconds.
      return bytes.subarray(0, 8_192).includes(0) ? '' : bytes.toString('utf8')
    } finally {
      await handle.close()
    }
  } catch (cause) {
    if (cause instanceof AppError || isUnreadable(cause)) return ''
    throw cause
  }
}

import { FILE_HEADERS_ONLY, formatPatch, type StructuredPatch, structuredPatch } from 'diff'

/** Lines around a change that are shown with it. */
const CONTEXT = 3
/** A longer comparison would block the other work of this process. */
const MAX_MS = 20

/** The texts of a file; `before` is `undefined` when it is new. */
type Texts = { before: string | undefined; after: string }

/** Returns the unified diff of a file. Two texts that cannot be compared in time are shown as removed and added as a whole. */
export function fileDiff(path: string, { before, after }: Texts): string {
  const old = before === undefined ? '/dev/null' : path
  const options = { context: CONTEXT, timeout: MAX_MS }
  const compared = before && structuredPatch(old, path, before, after, undefined, undefined, options)
  return formatPatch(compared || replaced({ old, path, before: before ?? '', after }), FILE_HEADERS_ONLY)
}

function replaced({ old, path, before, after }: Required<Texts> & { old: string; path: string }): StructuredPatch {
  const [removed, added] = [linesOf(before ?? ''), linesOf(after)]
  const lines = [...marked('-', removed), ...marked('+', added)]
  const hunk = { oldStart: 1, oldLines: removed.length, newStart: 1, newLines: added.length, lines }
  const hunks = lines.length > 0 ? [hunk] : []
  return { oldFileName: old, newFileName: path, oldHeader: undefined, newHeader: undefined, hunks }
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.split(/(?<=\n)/))

const marked = (mark: '-' | '+', lines: readonly string[]): string[] =>
  lines.flatMap((line) =>
    line.endsWith('\n') ? [mark + line.slice(0, -1)] : [mark + line, '\\ No newline at end of file'],
  )

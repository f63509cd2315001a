/** A line of two texts: in both, or in one of them. */
export type DiffLine = { kind: 'same' | 'removed' | 'added'; text: string }

/** The most cells of a comparison table. Of larger texts only the equal beginning and end are compared. */
const MOST_CELLS = 1_000_000

/** The lines of two texts, with what was removed before what was added. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const first = sharedAtStart(old, now)
  const last = sharedAtStart(old.slice(first).toReversed(), now.slice(first).toReversed())
  const same = (lines: readonly string[]) => lines.map((text): DiffLine => ({ kind: 'same', text }))
  const middle = compare(old.slice(first, old.length - last), now.slice(first, now.length - last))
  return [...same(old.slice(0, first)), ...middle, ...same(old.slice(old.length - last))]
}

function sharedAtStart(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((line, i) => line !== other[i])
  return at < 0 ? Math.min(one.length, other.length) : at
}

function compare(old: readonly string[], now: readonly string[]): DiffLine[] {
  if (old.length * now.length > MOST_CELLS)
    return [...old.map((text) => lineOf('removed', text)), ...now.map((text) => lineOf('added', text))]
  const shared = longestShared(old, now)
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(lineOf('same', old[i++] ?? ''))
      j++
    } else if (j >= now.length || (i < old.length && at(shared, i + 1, j) >= at(shared, i, j + 1)))
      lines.push(lineOf('removed', old[i++] ?? ''))
    else lines.push(lineOf('added', now[j++] ?? ''))
  }
  return lines
}

const lineOf = (kind: DiffLine['kind'], text: string): DiffLine => ({ kind, text })

const at = (table: readonly Uint16Array[], i: number, j: number) => table[i]?.[j] ?? 0

/** How many lines the rests from each pair of places share. */
function longestShared(old: readonly string[], now: readonly string[]): readonly Uint16Array[] {
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1))
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--) {
      const row = table[i] as Uint16Array
      row[j] = old[i] === now[j] ? at(table, i + 1, j + 1) + 1 : Math.max(at(table, i + 1, j), at(table, i, j + 1))
    }
  return table
}

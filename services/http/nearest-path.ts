/** A longer path is not compared: it would take long, and is no slip of the pen. */
const MAX_CHARS = 100
/** Slips: characters that are wrong, missing or too many. */
const MAX_SLIPS = 3

/** The template, such as `/sessions/{id}`, that is most like a path; `undefined` when none is like it. */
export function nearestPath(path: string, templates: readonly string[]): string | undefined {
  if (path.length > MAX_CHARS) return undefined
  const segments = path.toLowerCase().split('/').filter(Boolean)
  let best: { template: string; slips: number } | undefined
  for (const template of templates) {
    const slips = slipsBetween(segments, template.split('/').filter(Boolean))
    if (slips <= MAX_SLIPS && slips < (best?.slips ?? Infinity)) best = { template, slips }
  }
  return best?.template
}

/** Paths of other lengths are not alike. A parameter is like everything. */
function slipsBetween(segments: readonly string[], template: readonly string[]): number {
  if (segments.length !== template.length) return Infinity
  return template.reduce((sum, part, i) => sum + (part.startsWith('{') ? 0 : distance(segments[i] ?? '', part)), 0)
}

/** The Levenshtein distance. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i)
  for (const [i, char] of Array.from(one).entries()) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j++) {
      const changed = (row[j] ?? 0) + (char === other[j] ? 0 : 1)
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

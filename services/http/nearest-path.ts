import type { RouteTable } from './routes.ts'

/** Returns the hint of a 404: the path that the client may have meant, as the API description writes it. */
export function hintWith(basePath: string, table: RouteTable): (path: string) => string {
  const templates = Object.keys(table).map((path) => path.replaceAll(/:(\w+)/g, '{$1}'))
  const inFull = (template: string) => basePath + template
  return (path) => {
    const own = path.replace(/^(\/api)?\/v1(?=\/)/, '')
    const nearest = nearestPath(own, templates)
    if (nearest !== undefined) return `did you mean ${inFull(nearest)}?`
    // A foreign format, such as OpenAI's, has its own base path.
    const [, format] = /^\/([^/]+)(?:\/|$)/.exec(own) ?? []
    const paths = templates.filter((template) => format !== undefined && template.startsWith(`/${format}/v1/`))
    return paths.length > 0
      ? `the paths of this format are ${paths.map(inFull).join(', ')}`
      : `the paths of this API begin with ${basePath}`
  }
}

/** A longer path is not compared: it would take long, and is hardly a typing error. */
const MAX_CHARS = 100
/** The most typing errors: wrong, missing or extra characters. */
const MAX_SLIPS = 3

/** The template, such as `/sessions/{id}`, that is most similar to a path; `undefined` when none is similar. */
function nearestPath(path: string, templates: readonly string[]): string | undefined {
  if (path.length > MAX_CHARS) return undefined
  const segments = path.toLowerCase().split('/').filter(Boolean)
  let best: { template: string; slips: number } | undefined
  for (const template of templates) {
    const slips = slipsBetween(segments, template.split('/').filter(Boolean))
    if (slips <= MAX_SLIPS && slips < (best?.slips ?? Infinity)) best = { template, slips }
  }
  return best?.template
}

/** Paths with different numbers of segments are not similar. A parameter matches every segment. */
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

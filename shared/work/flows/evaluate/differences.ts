import { isJsonObject } from '../../../kernel/json.ts'

/** A place where two outputs differ; `path` is a JSON pointer, an absent value is `null`. */
export type Difference = { path: string; draft: unknown; published: unknown }

const MAX_DIFFERENCES = 50

/** The first 50 places where two JSON values differ, in the order of the draft's fields. */
export function differencesOf(draft: unknown, published: unknown): Difference[] {
  const found: Difference[] = []
  collect({ path: '', draft, published }, found)
  return found
}

function collect({ path, draft, published }: Difference, found: Difference[]): void {
  if (found.length >= MAX_DIFFERENCES || draft === published) return
  const [a, b] = [entriesOf(draft), entriesOf(published)]
  if (!a || !b || Array.isArray(draft) !== Array.isArray(published)) {
    found.push({ path, draft: draft ?? null, published: published ?? null })
    return
  }
  for (const key of new Set([...a.keys(), ...b.keys()])) {
    collect({ path: `${path}/${escape(key)}`, draft: a.get(key), published: b.get(key) }, found)
  }
}

/** The fields of an object or the items of an array; `undefined` for other values. */
function entriesOf(value: unknown): Map<string, unknown> | undefined {
  return isJsonObject(value) || Array.isArray(value) ? new Map(Object.entries(value)) : undefined
}

const escape = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')

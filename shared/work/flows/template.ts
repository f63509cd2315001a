import { truncate } from '../../kernel/text.ts'
import type { Template, TemplateValues } from './port.ts'

/** A place where a template inserts a value. `path` holds the keys below the root: names of properties or indexes of arrays. */
export type Reference = { root: keyof TemplateValues; path: readonly string[] }

export type ParsedTemplate = Template & { references: readonly Reference[] }

type Segment = string | Reference

const OPEN = '{{'
const CLOSE = '}}'
const MAX_REFERENCES = 200
const MAX_PATH = 16
/** The most characters of a rendered template: more than any model reads. A value that does not fit is cut. */
const MAX_RENDERED = 4_000_000
const CUT = '[cut]'
/** How many characters of a wrong reference a message repeats. */
const MAX_SHOWN = 80

const FORMS = '{{.input.<path>}}, {{.sub_outputs.<name>}} or {{.memory}}'

/**
 * Parses a template once; the values that `render` inserts are never parsed. References are `{{.input.<path>}}`,
 * `{{.sub_outputs.<name>[.<path>]}}` and `{{.memory}}` (D6.3). Strings are inserted unchanged, other values as JSON, and an absent
 * value as the empty text. Returns a message when the text holds any other `{{`.
 */
export function parseTemplate(text: string): ParsedTemplate | { problem: string } {
  const segments: Segment[] = []
  let from = 0
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, from)) {
    const close = text.indexOf(CLOSE, open + OPEN.length)
    if (close < 0) return { problem: `{{ at character ${open} is never closed: write ${FORMS}` }
    const inner = text.slice(open + OPEN.length, close)
    const reference = parseReference(inner)
    if (!reference) return { problem: `{{${truncate(inner, MAX_SHOWN)}}} is no reference: write ${FORMS}` }
    segments.push(text.slice(from, open), reference)
    from = close + CLOSE.length
  }
  segments.push(text.slice(from))
  const references = segments.filter((segment) => typeof segment !== 'string')
  if (references.length > MAX_REFERENCES) return { problem: `more than ${MAX_REFERENCES} references: use fewer` }
  return { references, render: (values) => render(segments, values) }
}

function parseReference(inner: string): Reference | undefined {
  const [empty, root, ...path] = inner.trim().split('.')
  if (empty !== '' || path.length > MAX_PATH || !path.every((key) => /^[^\s{}]+$/.test(key))) return undefined
  if (root === 'memory') return path.length === 0 ? { root, path } : undefined
  return (root === 'input' || root === 'sub_outputs') && path.length > 0 ? { root, path } : undefined
}

function render(segments: readonly Segment[], values: TemplateValues): string {
  let text = ''
  for (const segment of segments) {
    const part = typeof segment === 'string' ? segment : textOf(lookUp(values, segment))
    if (text.length + part.length > MAX_RENDERED) return truncate(text + part, MAX_RENDERED, CUT)
    text += part
  }
  return text
}

/** Follows own properties only, so that names such as `constructor` and `__proto__` find nothing unless the value really has them. */
function lookUp(values: TemplateValues, { root, path }: Reference): unknown {
  let value: unknown = values[root]
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    if (Array.isArray(value) && key === 'length') return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined ? '' : JSON.stringify(value)
}

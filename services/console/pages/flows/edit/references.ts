import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../base/json-value.ts'

/** Something that a prompt can insert. */
export type Reference = { text: string; hint: string }

const MOST = 60
const MOST_DEPTH = 4

/** The references that the prompts of an agent may contain. A sub-agent cannot use the output of another one. */
export function referencesFor(definition: JsonObject, agent: 'main' | 'sub-agent'): readonly Reference[] {
  const outputs = agent === 'main' ? listOf(definition['sub_agents']).filter(isObject) : []
  return [
    ...pathsOf(definition['input_schema'], 'input', 0),
    ...outputs.flatMap(({ name, output_schema: schema }) => outputOf(textOf(name), schema)),
    { text: '{{.memory}}', hint: 'corrections' },
  ].slice(0, MOST)
}

function outputOf(name: string, schema: unknown): Reference[] {
  if (!isKey(name)) return []
  const path = `sub_outputs.${name}`
  return [{ text: `{{.${path}}}`, hint: typeOf(schema) }, ...pathsOf(schema, path, 1)]
}

function pathsOf(schema: unknown, path: string, depth: number): Reference[] {
  if (depth > MOST_DEPTH) return []
  const properties = Object.entries(objectOf(objectOf(schema)['properties'])).filter(([name]) => isKey(name))
  return properties.slice(0, MOST).flatMap(([name, property]) => {
    const below = `${path}.${name}`
    return [{ text: `{{.${below}}}`, hint: typeOf(property) }, ...pathsOf(property, below, depth + 1)]
  })
}

/** A template cannot name the others: its paths are divided at points. */
const isKey = (name: string) => /^[^\s{}.]+$/.test(name)

function typeOf(schema: unknown): string {
  const { type, enum: choices } = objectOf(schema)
  if (Array.isArray(choices)) return 'one of a list'
  return typeof type === 'string' ? type : ''
}

/** The incomplete reference before the caret: its start, and its possible completions. */
export type Completion = { from: number; options: readonly Reference[] }

const MOST_OPTIONS = 8

/** The references that can complete the `{{…` at the caret; `undefined` if there is no incomplete reference. */
export function completionAt(text: string, caret: number, references: readonly Reference[]): Completion | undefined {
  const from = text.lastIndexOf('{{', caret - 1)
  const written = text.slice(from, caret)
  if (from < 0 || written.includes('}') || written.includes('\n')) return undefined
  const wanted = written.replace(/^\{\{\s*\.?/, '').toLowerCase()
  const options = references
    .filter((each) => each.text.toLowerCase().includes(wanted))
    .toSorted((one, other) => one.text.toLowerCase().indexOf(wanted) - other.text.toLowerCase().indexOf(wanted))
  return options.length === 0 ? undefined : { from, options: options.slice(0, MOST_OPTIONS) }
}

/** The text with the inserted reference, and the new position of the caret. */
export function complete(text: string, span: { from: number; to: number }, reference: string) {
  const rest = text.slice(span.to).replace(/^\s*\}\}/, '')
  return { text: text.slice(0, span.from) + reference + rest, caret: span.from + reference.length }
}

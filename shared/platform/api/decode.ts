import { isUtf8 } from 'node:buffer'
import type { JsonObject } from '../../kernel/events.ts'
import { isJsonObject, parseJson } from '../../kernel/json.ts'
import { countChars } from '../../kernel/text.ts'
import { syntaxErrorAt } from '../../reading/json-places.ts'
import type { Schemas } from './document.ts'
import { IgnoredFields } from './ignored-fields.ts'
import { findFlaw } from './json-scan.ts'
import { compileCheck, type Fields, type Refusal, type SchemaCheck, type Shape } from './schema-check.ts'

/** `ignored` has the pointers of unknown fields, also for a refused body. */
export type Decoded = ({ value: JsonObject } | { refusal: Refusal }) & { ignored?: readonly string[] }

/** For a body of JSON lines: they become its `items`, of which at most `most` are read. `fields` are its other fields. */
export type Lines = { fields: JsonObject; most: number }

/** Decodes the bytes of a body into the known fields of its schema, or describes the first problem. */
export type Decode = (bytes: Uint8Array, lines?: Lines) => Decoded

/** Creates the decoder for bodies of one of the schemas. It has no side effects, so it works in the main thread and in `decode-worker.ts`. */
export function createDecode(schemas: Schemas, name: string): Decode {
  let check: SchemaCheck | undefined
  return (bytes, lines) => {
    const parsed = parse(bytes, schemas[name]?.['x-max-values'], lines)
    if ('refusal' in parsed) return parsed
    check ??= compileCheck(schemas, name) // Compiled at first use, and only for a body that was parsed.
    const { shape, refusalOf } = check
    const fields = new IgnoredFields()
    const value = shape ? pickFields(parsed.value, shape, fields) : parsed.value
    const refusal = refusalOf(value)
    const ignored = fields.pointers.length > 0 && { ignored: fields.pointers }
    return refusal ? { refusal, ...ignored } : { value, ...ignored }
  }
}

function parse(bytes: Uint8Array, maxValues: number | undefined, lines: Lines | undefined): Decoded {
  if (bytes.length === 0 && !lines) return { value: {} } // An absent body counts as an empty object (D2.1).
  if (!isUtf8(bytes)) return refuse('the body is not valid UTF-8')
  const text = new TextDecoder().decode(bytes) // Drops a byte order mark.
  const flaw = findFlaw(text, maxValues)
  if (flaw !== undefined) return refuse(flaw)
  if (lines) return parseLines(text, lines)
  const value = parseJson(text)
  if (value === undefined) return refuse(`the body is not valid JSON: ${describeSyntaxError(text)}`)
  if (!isJsonObject(value)) return refuse('the body must be a JSON object')
  return { value }
}

/** Parses each line separately, because two invalid lines may form valid JSON together. Empty lines are ignored. */
function parseLines(text: string, { fields, most }: Lines): Decoded {
  const items: JsonObject[] = []
  for (const [i, line] of text.split('\n').entries()) {
    if (items.length === most || line.trim() === '') continue
    const item = parseJson(line)
    if (!isJsonObject(item)) return refuse(`line ${i + 1} is not one JSON object: each line is an item`)
    items.push(item)
  }
  return { value: { ...fields, items } }
}

/** Where a text stops being JSON, for a person: lines and columns count from 1, columns in code points (D2.6). */
function describeSyntaxError(text: string): string {
  const at = syntaxErrorAt(text) ?? 0
  const before = text.slice(0, at).split('\n')
  const place = `line ${before.length}, column ${countChars(before.at(-1) ?? '') + 1}`
  return at === text.length ? `it ends too early, at ${place}` : `look at ${place}`
}

const refuse = (message: string): Decoded => ({ refusal: { message } })

/** Copies the known fields, also within objects and lists, and adds the others to `ignored`. */
function pickFields(body: JsonObject, shape: Fields, ignored: IgnoredFields): JsonObject {
  const picked: JsonObject = {}
  for (const field of Object.keys(body)) {
    if (!shape.has(field)) {
      ignored.add(field)
      continue
    }
    ignored.enter(field)
    picked[field] = pick(body[field], shape.get(field), ignored)
    ignored.leave()
  }
  return picked
}

function pick(value: unknown, shape: Shape | undefined, ignored: IgnoredFields): unknown {
  if (shape instanceof Map && isJsonObject(value)) return pickFields(value, shape, ignored)
  if (!shape || !('items' in shape) || !Array.isArray(value)) return value
  return value.map((item: unknown, i) => {
    ignored.enter(i)
    const picked = pick(item, shape.items, ignored)
    ignored.leave()
    return picked
  })
}

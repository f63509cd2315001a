import { isUtf8 } from 'node:buffer'
import type { JsonObject } from '../events.ts'
import { isJsonObject, parseJson } from '../json.ts'
import type { Schemas } from './document.ts'
import { findFlaw } from './json-scan.ts'
import { compileCheck, type Refusal, type SchemaCheck, type Shape } from './schema-check.ts'

export type Decoded = { value: JsonObject } | { refusal: Refusal }

/** Decodes the bytes of a body into the known fields of its schema, or says what is wrong with them. */
export type Decode = (name: string, bytes: Uint8Array) => Decoded

/** Creates a decoder. It has no side effects, so it works in the main thread and in `decode-worker.ts`. */
export function createDecode(schemas: Schemas): Decode {
  const checks = new Map<string, SchemaCheck>()
  const checkOf = (name: string): SchemaCheck => {
    const known = checks.get(name)
    if (known) return known
    const check = compileCheck(schemas, name)
    checks.set(name, check)
    return check
  }
  return (name, bytes) => {
    const parsed = parse(bytes, schemas[name]?.['x-max-values']) // The check is compiled only for a body that may pass it.
    if ('refusal' in parsed) return parsed
    const check = checkOf(name)
    const value = pick(parsed.value, check.shape)
    const refusal = check.refusalOf(value)
    return refusal ? { refusal } : { value }
  }
}

function parse(bytes: Uint8Array, maxValues: number | undefined): Decoded {
  if (bytes.length === 0) return { value: {} } // An absent body counts as an empty object (D2.1).
  if (!isUtf8(bytes)) return refuse('the body is not valid UTF-8')
  const text = new TextDecoder().decode(bytes) // Drops a byte order mark.
  const flaw = findFlaw(text, maxValues)
  if (flaw !== undefined) return refuse(flaw)
  const value = parseJson(text)
  if (value === undefined) return refuse('the body is not valid JSON')
  if (!isJsonObject(value)) return refuse('the body must be a JSON object')
  return { value }
}

const refuse = (message: string): Decoded => ({ refusal: { message } })

/** Copies the fields that are read, also of the objects inside. */
function pick(body: JsonObject, shape: Shape): JsonObject {
  const picked: JsonObject = {}
  for (const [field, inner] of shape) {
    if (!Object.hasOwn(body, field)) continue
    const value = body[field]
    picked[field] = inner && isJsonObject(value) ? pick(value, inner) : value
  }
  return picked
}

import type { JsonObject } from '../../../kernel/events.ts'
import { isJsonObject } from '../../../kernel/json.ts'
import { type Shape, sampleNumber, sampleText } from './sample-values.ts'

/** A value that fits a JSON Schema, or the reason why none was found: `problem` is the end of a sentence, `path` a JSON pointer into the schema. */
export type Sample = { value: unknown } | { path: string; problem: string }

/** Makes a short, readable value for a schema (draft 2020-12 or draft-07). The same schema gives the same value. */
export function sampleOf(schema: JsonObject): Sample {
  try {
    return { value: new Sampler(schema).sample(schema, { path: '', name: 'text', index: 0, depth: 0 }) }
  } catch (cause) {
    if (!(cause instanceof NoSample)) throw cause
    return { path: cause.path, problem: cause.message }
  }
}

class NoSample extends Error {
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

/** Where in the schema a value is made: `name` is the nearest property's, `index` tells the items of an array apart. */
type Place = { path: string; name: string; index: number; depth: number }

/** A schema may refer to itself: beyond this depth, or number of values, only required parts are made. */
const SHALLOW = 6
const MANY_VALUES = 200
const MAX_DEPTH = 32
const MAX_VALUES = 5_000
/** How many properties `$ref`, `allOf` and alternatives may merge, counted at each merge. */
const MAX_MERGED = 100_000

/** Keywords that a value made from the other keywords may break. */
const UNKNOWN = ['not', 'if', 'contains', 'pattern', 'dependentRequired', 'dependentSchemas', '$dynamicRef']

class Sampler {
  readonly #root: JsonObject
  #count = 0
  #merges = 0

  constructor(root: JsonObject) {
    this.#root = root
  }

  sample(given: unknown, place: Place): unknown {
    if (given === false) throw new NoSample(place.path, 'nothing fits `false`')
    if (++this.#count > MAX_VALUES || place.depth > MAX_DEPTH)
      throw new NoSample(place.path, 'a value that fits is too large, or has no end')
    const schema = this.#merged(isJsonObject(given) ? given : {}, place)
    const fixed = fixedValue(schema, place.index)
    if (fixed) return fixed.value
    const branch = this.#branch(schema, place)
    if (branch) return branch.value
    const unknown = UNKNOWN.find((keyword) => schema[keyword] !== undefined)
    if (unknown !== undefined)
      throw new NoSample(place.path, `no value is made for \`${unknown}\`: give it \`examples\` there`)
    return this.#typed(schema, place)
  }

  #typed(schema: JsonObject, place: Place): unknown {
    const type = typeOf(schema)
    if (type === 'object') return this.#object(schema, place)
    if (type === 'array') return this.#array(schema, place)
    if (type === 'boolean') return place.index % 2 === 0
    if (type === 'null') return null
    const shape: Shape = { schema, name: place.name, index: place.index }
    const value = type === 'string' ? sampleText(shape) : sampleNumber(shape, type === 'integer')
    if (value === undefined) throw new NoSample(place.path, `no ${type} is found within its limits`)
    return value
  }

  /** Optional properties without a possible value are left out. */
  #object(schema: JsonObject, place: Place): JsonObject {
    const properties = isJsonObject(schema['properties']) ? schema['properties'] : {}
    const required = namesIn(schema['required'])
    const value: JsonObject = {}
    for (const name of new Set([...Object.keys(properties), ...required])) {
      const inner = Object.hasOwn(properties, name) ? properties[name] : (schema['additionalProperties'] ?? {})
      const at = { ...place, name, depth: place.depth + 1, path: `${place.path}/properties/${name}` }
      const made = required.includes(name) ? { value: this.sample(inner, at) } : this.#optional(inner, at)
      if (made) value[name] = made.value
    }
    return value
  }

  #optional(schema: unknown, place: Place): { value: unknown } | undefined {
    if (place.depth > SHALLOW || this.#count > MANY_VALUES) return undefined
    try {
      return { value: this.sample(schema, place) }
    } catch (cause) {
      if (cause instanceof NoSample) return undefined
      throw cause
    }
  }

  #array(schema: JsonObject, place: Place): unknown[] {
    const fixed = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : listIn(schema['items'])
    const rest = Array.isArray(schema['items']) ? schema['additionalItems'] : schema['items']
    const least = numberIn(schema['minItems']) ?? 0
    const wanted = place.depth > SHALLOW ? least : Math.max(least, fixed.length, rest === false ? 0 : 1)
    const length = Math.min(wanted, numberIn(schema['maxItems']) ?? wanted)
    const items: unknown[] = []
    for (let index = 0; index < length; index++) {
      const inner = index < fixed.length ? fixed[index] : (rest ?? {})
      const path = index < fixed.length ? `${place.path}/items/${index}` : `${place.path}/items`
      items.push(this.sample(inner, { ...place, index, path, depth: place.depth + 1 }))
    }
    return items
  }

  /** The first alternative with a possible value, merged with the keywords beside the alternatives. */
  #branch(schema: JsonObject, place: Place): { value: unknown } | undefined {
    const keyword = ['anyOf', 'oneOf'].find((name) => Array.isArray(schema[name]))
    if (keyword === undefined) return undefined
    const { [keyword]: branches, ...rest } = schema
    let problem: NoSample | undefined
    for (const branch of listIn(branches)) {
      try {
        return {
          value: this.sample(this.#merge(rest, branch, place), { ...place, depth: place.depth + 1 }),
        }
      } catch (cause) {
        if (!(cause instanceof NoSample)) throw cause
        problem ??= cause
      }
    }
    throw problem ?? new NoSample(place.path, `\`${keyword}\` is empty`)
  }

  /** The schema with all that `$ref` and `allOf` add to it. */
  #merged(schema: JsonObject, place: Place, depth = 0): JsonObject {
    const { $ref: ref, allOf, ...own } = schema
    if (ref === undefined && allOf === undefined) return schema
    if (depth > MAX_DEPTH) throw new NoSample(place.path, 'it refers to itself')
    const parts = [...(typeof ref === 'string' ? [this.#target(ref, place)] : []), ...listIn(allOf)]
    const merged = parts.map((part) => this.#merged(isJsonObject(part) ? part : {}, place, depth + 1))
    return merged.reduce((one, other) => this.#merge(one, other, place), own)
  }

  #merge(one: JsonObject, other: unknown, { path }: Place): JsonObject {
    const merged = merge(one, isJsonObject(other) ? other : {})
    this.#merges += 1 + Object.keys(merged['properties'] ?? {}).length + namesIn(merged['required']).length
    if (this.#merges > MAX_MERGED) throw new NoSample(path, 'its parts are too many')
    return merged
  }

  #target(ref: string, { path }: Place): unknown {
    const steps = decode(ref).split('/').slice(1)
    const found = steps.reduce<unknown>(
      (at, step) => (at as JsonObject | undefined)?.[step.replaceAll('~1', '/').replaceAll('~0', '~')],
      this.#root,
    )
    if (/^#(?:\/|$)/.test(ref) && found !== undefined) return found
    throw new NoSample(path, `the reference ${JSON.stringify(ref)} is not followed`)
  }
}

/** Returns the text unchanged if it is not valid percent-encoding. */
function decode(ref: string): string {
  try {
    return decodeURIComponent(ref)
  } catch {
    return ref
  }
}

function merge(one: JsonObject, other: JsonObject): JsonObject {
  const [properties, more] = [one['properties'], other['properties']]
  const required = [...new Set([...namesIn(one['required']), ...namesIn(other['required'])])]
  return {
    ...one,
    ...other,
    ...(isJsonObject(properties) && isJsonObject(more) && { properties: { ...properties, ...more } }),
    ...(required.length > 0 && { required }),
  }
}

/** A value that the schema itself gives (`const`, `enum`, `default` or an example). */
function fixedValue(schema: JsonObject, index: number): { value: unknown } | undefined {
  if ('const' in schema) return { value: schema['const'] }
  for (const list of [schema['enum'], schema['examples']].map(listIn))
    if (list.length > 0) return { value: list[index % list.length] }
  return 'default' in schema ? { value: schema['default'] } : undefined
}

const HINTS: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties']],
  ['array', ['items', 'prefixItems', 'minItems', 'uniqueItems']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

/** The first type of the schema; without one, that of its keywords. */
function typeOf(schema: JsonObject): string {
  const [type] = [schema['type']].flat()
  if (typeof type === 'string') return type
  return HINTS.find(([, keywords]) => keywords.some((keyword) => keyword in schema))?.[0] ?? 'string'
}

const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const namesIn = (value: unknown): string[] => listIn(value).filter((name) => typeof name === 'string')

const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

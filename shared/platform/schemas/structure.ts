import type { JsonObject } from '../../kernel/events.ts'
import { escapePointer, isJsonObject } from '../../kernel/json.ts'
import { type Draft, KEYWORDS } from './keywords.ts'
import type { SchemaProblem } from './port.ts'

/** A schema in its document, with the schemas that apply to the same value as it does. */
export type SchemaNode = { schema: JsonObject; path: string; inPlace: SchemaNode[] }

type Structure = { nodes: readonly SchemaNode[] } | { problem: SchemaProblem }

/** Reads every schema of a document that can be evaluated, and the places that its references name. */
export function readStructure(root: JsonObject, draft: Draft): Structure {
  const reader = new StructureReader(root, draft)
  return reader.read()
}

class StructureReader {
  readonly #root: JsonObject
  readonly #draft: Draft
  readonly #nodes = new Map<JsonObject, SchemaNode>()
  readonly #pending: SchemaNode[] = []

  constructor(root: JsonObject, draft: Draft) {
    this.#root = root
    this.#draft = draft
  }

  read(): Structure {
    this.#nodeOf(this.#root, '')
    for (let node = this.#pending.pop(); node; node = this.#pending.pop()) {
      const problem = this.#readKeywords(node) ?? this.#readReference(node)
      if (problem) return { problem }
    }
    return { nodes: [...this.#nodes.values()] }
  }

  #readKeywords(node: SchemaNode): SchemaProblem | undefined {
    for (const [name, value] of Object.entries(node.schema)) {
      const path = `${node.path}/${escapePointer(name)}`
      if (name === '$id' && node.path !== '') return { path, message: 'is allowed only at the top: remove it' }
      const keyword = KEYWORDS[this.#draft].get(name)
      const message = keyword?.problem(value)
      if (message !== undefined) return { path, message }
      for (const { key, schema } of keyword?.subschemas?.(value) ?? []) {
        const inner = key.reduce((before, part) => `${before}/${escapePointer(part)}`, path)
        if (key.includes('__proto__')) return { path: inner, message: 'must have another name' }
        const problem = this.#link(node, { schema, path: inner, isInPlace: keyword?.isInPlace === true })
        if (problem) return problem
      }
    }
    return nullableProblem(node)
  }

  #readReference(node: SchemaNode): SchemaProblem | undefined {
    const reference = node.schema['$ref']
    if (typeof reference !== 'string') return undefined
    const path = `${node.path}/$ref`
    if (reference !== '#' && !reference.startsWith('#/')) {
      return { path, message: 'must lead to a place in this schema, for example "#/$defs/name"' }
    }
    const target = resolvePointer(this.#root, reference)
    if (target === undefined) return { path, message: 'leads to no schema: define the schema there, under $defs' }
    return this.#link(node, { schema: target, path: reference.slice(1), isInPlace: true })
  }

  #link(
    from: SchemaNode,
    { schema, path, isInPlace }: { schema: unknown; path: string; isInPlace: boolean },
  ): SchemaProblem | undefined {
    if (typeof schema === 'boolean') return undefined
    if (!isJsonObject(schema)) return { path, message: 'must be a schema: an object, true or false' }
    const node = this.#nodeOf(schema, path)
    if (isInPlace) from.inPlace.push(node)
    return undefined
  }

  #nodeOf(schema: JsonObject, path: string): SchemaNode {
    const known = this.#nodes.get(schema)
    if (known) return known
    const node: SchemaNode = { schema, path, inPlace: [] }
    this.#nodes.set(schema, node)
    this.#pending.push(node)
    return node
  }
}

/** `nullable` belongs to OpenAPI; the compiler reads it, and only beside `type`. */
function nullableProblem({ schema, path }: SchemaNode): SchemaProblem | undefined {
  const { nullable, type } = schema
  if (nullable === undefined) return undefined
  const isRight = typeof nullable === 'boolean' && type !== undefined && (nullable || ![type].flat().includes('null'))
  return isRight ? undefined : { path: `${path}/nullable`, message: 'is not supported here: add "null" to "type"' }
}

/** The value at a reference such as `#/$defs/a~1b`. `undefined`: there is none, or a schema with an `$id` is on the way. */
function resolvePointer(root: JsonObject, reference: string): unknown {
  let value: unknown = root
  for (const part of reference.split('/').slice(1)) {
    const isScoped = value !== root && isJsonObject(value) && typeof value['$id'] === 'string'
    const key = decodePart(part)
    if (isScoped || typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

function decodePart(part: string): string {
  const text = part.replaceAll('~1', '/').replaceAll('~0', '~')
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

import type { JsonObject } from '../../kernel/events.ts'
import { draftOf } from './keywords.ts'
import type { SchemaProblem } from './port.ts'
import { type Excess, findExcess, type SizeLimits } from './size.ts'
import { readStructure, type SchemaNode } from './structure.ts'

const KIB = 1_024
export const MAX_SCHEMA_BYTES = 64 * KIB
const SCHEMA_LIMITS: SizeLimits = { bytes: MAX_SCHEMA_BYTES, depth: 32, nodes: 2_000, values: 64 * KIB }
/** How many schemas one value may be checked against: references multiply them. */
const MAX_EVALUATIONS = 10_000

/**
 * The first reason to refuse a schema before it is compiled (D6.3): it is too large, is not JSON Schema of draft 2020-12 or draft-07,
 * refers to other documents, or refers to itself without end. Takes time linear in the schema, and at most a few ms.
 */
export function budgetProblem(schema: JsonObject): SchemaProblem | undefined {
  const excess = findExcess(schema, SCHEMA_LIMITS)
  if (excess) return { path: excess.path, message: SIZE_MESSAGES[excess.breaks] }
  const draft = draftOf(schema['$schema'])
  if (!draft) {
    const wanted = 'https://json-schema.org/draft/2020-12/schema or http://json-schema.org/draft-07/schema#'
    return { path: '/$schema', message: `must be ${wanted}` }
  }
  const structure = readStructure(schema, draft)
  return 'problem' in structure ? structure.problem : evaluationProblem(structure.nodes)
}

const SIZE_MESSAGES: Record<Excess['breaks'], string> = {
  bytes: `is larger than ${SCHEMA_LIMITS.bytes / KIB} KiB: shorten it`,
  depth: `is nested deeper than ${SCHEMA_LIMITS.depth} levels: move inner schemas to $defs and refer to them`,
  nodes: `has more than ${SCHEMA_LIMITS.nodes} objects and lists: simplify it`,
  values: `has more than ${SCHEMA_LIMITS.values} values: simplify it`,
  kind: 'is not JSON',
}

/** Counts, for each schema, the evaluations that it causes for one value; finds schemas that are evaluated without end. */
function evaluationProblem(nodes: readonly SchemaNode[]): SchemaProblem | undefined {
  const counts = new Map<SchemaNode, number>()
  const open = new Set<SchemaNode>()
  const stack = [...nodes]
  for (let node = stack.at(-1); node; node = stack.at(-1)) {
    if (counts.has(node) || open.has(node)) {
      stack.pop()
      if (counts.has(node)) continue
      open.delete(node)
      const count = countOf(node, counts)
      if (count > MAX_EVALUATIONS) return { path: node.path, message: TOO_MANY_EVALUATIONS }
      counts.set(node, count)
      continue
    }
    open.add(node)
    for (const inner of node.inPlace) {
      if (open.has(inner)) return { path: node.path, message: ENDLESS }
      if (!counts.has(inner)) stack.push(inner)
    }
  }
  return undefined
}

const countOf = ({ inPlace }: SchemaNode, counts: ReadonlyMap<SchemaNode, number>): number =>
  inPlace.reduce((sum, inner) => sum + (counts.get(inner) ?? 0), 1)

const TOO_MANY_EVALUATIONS =
  `checks one value against more than ${MAX_EVALUATIONS} schemas, because its references multiply: ` +
  'use fewer alternatives that refer to the same schemas'
const ENDLESS = 'refers to itself without end: put the reference under properties or items'

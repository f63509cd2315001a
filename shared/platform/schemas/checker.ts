import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { LRUCache } from 'lru-cache'
import { AppError, invalidRequest } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { budgetProblem } from './budget.ts'
import type { SchemaChecker, SchemaCheckers, SchemaProblem, UnusableSchema } from './port.ts'
import { sentenceOf } from './problems.ts'
import { type QueuedTask, type QueueLimits, SchemaQueue, type TaskResult } from './schema-queue.ts'
import { type Excess, findExcess, type SizeLimits } from './size.ts'

type Limits = QueueLimits & { newSchemasMs: number }

/** Each thread takes up to 100 MB (`schema-thread.ts`). */
const MAX_THREADS = 8

const LIMITS: Limits = {
  newSchemasMs: 110,
  taskMs: 140,
  totalMs: 180,
  waitMs: 5_000,
  waiting: { max: 128, maxPerTenant: 64 },
  idleMs: 60_000,
  threads: Math.min(Math.max(availableParallelism() - 1, 1), MAX_THREADS),
}

const MIB = 1_024 * 1_024
const VALUE_LIMITS: SizeLimits = { bytes: 10 * MIB, depth: 64, nodes: 100_000, values: 200_000 }

/** Checks values in threads, which start with the first check. A schema object must not change once it has been checked. */
export function createSchemaCheckers(given: Partial<Limits> = {}): SchemaCheckers {
  const limits = { ...LIMITS, ...given }
  const queue = new SchemaQueue(limits)
  const identify = createIdentify()
  const valid = new LRUCache<string, true>({ maxSize: VALID_CHARS, sizeCalculation: (_, key) => key.length })
  const runFor =
    (tenant: TenantId): Run =>
    async (schema, task) => {
      const known = identify(schema)
      if ('unusable' in known) return { ...known, tookMs: 0 }
      const key = keyOf(tenant, known.id, task)
      if (key !== undefined && valid.get(key)) return { problems: [], tookMs: 0 }
      const result = await queue.run(tenant, { ...known, ...task })
      if (key !== undefined && 'problems' in result && result.problems.length === 0) valid.set(key, true)
      return result
    }
  return {
    of: (tenant) => createChecker(runFor(tenant), limits),
    close: () => queue.close(),
  }
}

/**
 * The most characters of values that a process remembers as valid, with their schemas' ids. Many values are checked more than once: the output of a
 * flow is checked where it is made and where it is returned, and some flows have few different outputs.
 */
const VALID_CHARS = 4 * MIB
const SHORT_CHARS = 2 * 1_024

/**
 * Identifies the check of a short value; `undefined` for others. The key contains the tenant, so that no tenant can
 * find out from the time of a check what another one has checked.
 */
const keyOf = (tenant: TenantId, id: string, { value }: Pick<QueuedTask, 'value'>): string | undefined =>
  value?.json !== undefined && value.json.length <= SHORT_CHARS ? `${tenant} ${id} ${value.json}` : undefined

type Run = (schema: JsonObject, task: Omit<QueuedTask, 'id' | 'schemaText'>) => Promise<TaskResult>

const createChecker = (run: Run, limits: Limits): SchemaChecker => ({
  async findUnusable(schemas, { wereAccepted = false } = {}) {
    const limitMs = wereAccepted ? limits.taskMs : limits.newSchemasMs
    const found: UnusableSchema[] = []
    let leftMs = limitMs
    for (const [at, schema] of schemas.entries()) {
      const result = await run(schema, { compileMs: { limit: limitMs, left: leftMs } })
      if ('unusable' in result) {
        if (wereAccepted && result.isSlow) throw unusableError(result)
        found.push({ at, problem: result.unusable, ...(result.isSlow && { isSlow: true }) })
        if (result.isSlow) break
      }
      leftMs = Math.max(0, leftMs - result.tookMs)
    }
    return found
  },
  async check(schema, value) {
    const excess = findExcess(value, VALUE_LIMITS)
    if (excess) return [{ path: excess.path, message: EXCESS_MESSAGES[excess.breaks] }]
    const compileMs = { limit: limits.taskMs, left: limits.taskMs }
    const result = await run(schema, { compileMs, value: { json: JSON.stringify(value) } })
    if ('problems' in result) return result.problems
    throw unusableError(result)
  },
})

/** A schema that was usable before and is slow now may become usable again. */
function unusableError({ unusable, isSlow }: Extract<TaskResult, { unusable: unknown }>): AppError {
  const reason = `the schema cannot be used: ${sentenceOf([unusable])}`
  return isSlow ? new AppError('unavailable', reason, { retryAfterSecs: 1 }) : invalidRequest(reason)
}

type Identified = { unusable: SchemaProblem } | Pick<QueuedTask, 'id' | 'schemaText'>

/** Checks a schema object against the budget once, and derives its id from its text: equal schemas share one validator. */
function createIdentify(): (schema: JsonObject) => Identified {
  const known = new WeakMap<JsonObject, { unusable: SchemaProblem } | { id: string }>()
  const read = (schema: JsonObject) => {
    const unusable = budgetProblem(schema)
    return unusable ? { unusable } : { id: createHash('sha256').update(JSON.stringify(schema)).digest('base64') }
  }
  return (schema) => {
    const entry = known.get(schema) ?? read(schema)
    known.set(schema, entry)
    return 'unusable' in entry ? entry : { ...entry, schemaText: () => JSON.stringify(schema) }
  }
}

const EXCESS_MESSAGES: Record<Excess['breaks'], string> = {
  bytes: `is larger than ${VALUE_LIMITS.bytes / MIB} MB: send less`,
  depth: `is nested deeper than ${VALUE_LIMITS.depth} levels: send a flatter value`,
  nodes: `has more than ${VALUE_LIMITS.nodes} objects and arrays: send less`,
  values: `has more than ${VALUE_LIMITS.values} values: send less`,
  kind: 'is not JSON',
}

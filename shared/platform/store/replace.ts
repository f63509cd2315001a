import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Collection, Fields } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export type Replacement = {
  /** Values of the collection's key. */
  key: Fields
  /** Builds the next document. It is called again when another write came first, so it must have no effects. */
  change(doc: JsonObject | undefined): JsonObject
  /** Called before each attempt to insert the first document. */
  beforeInsert?(): Promise<unknown>
}

/** Losing the race more often than this means that the cause is not a race. */
const MAX_TRIES = 20

/**
 * Replaces a document, or inserts the first one, by compare-and-set. Returns the document as it is stored. Throws what `change`
 * throws, and then stores nothing.
 */
export async function replaceDoc(
  collection: Collection,
  tenant: TenantId,
  { key, change, beforeInsert }: Replacement,
): Promise<JsonObject> {
  return untilFirst(async () => {
    const found = await collection.get(tenant, key)
    const doc = { ...change(found?.doc), ...key }
    if (!found) await beforeInsert?.()
    const isStored = found
      ? await collection.replaceIfVersion(tenant, { doc, version: found.version })
      : await collection.insert(tenant, doc)
    return isStored ? doc : OVERTAKEN
  })
}

/** The result of an attempt to write when another write came first. */
export const OVERTAKEN = Symbol('overtaken')

/** Repeats an attempt to write until no other write comes first. Throws `unavailable` after `maxTries`. */
export async function untilFirst<T>(attempt: () => Promise<T | typeof OVERTAKEN>, maxTries = MAX_TRIES): Promise<T> {
  for (let tries = 0; tries < maxTries; tries++) {
    const result = await attempt()
    if (result !== OVERTAKEN) return result
  }
  throw storeUnavailable('too many writers')
}

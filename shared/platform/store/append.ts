import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Collection, Fields, WriteOptions } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export type Addition = {
  /** Values of the order's `within` fields: documents with the same values are numbered together. */
  within: Fields
  /** Unique values that show whether the document is already stored. */
  identity: Fields
  doc: JsonObject
  /** Called before each attempt to write. */
  writeOptions?: () => WriteOptions
}

/** Losing the race for a number more often than this means that the cause is not a race. */
const MAX_TRIES = 100

/**
 * Inserts a document with the next number in `seq`, counted from 1, and tries again when another process took that number.
 * Returns the document's number; if it is already stored, the number that it has.
 */
export async function appendNext(collection: Collection, tenant: TenantId, addition: Addition): Promise<number> {
  const { within, identity, doc, writeOptions = () => ({}) } = addition
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const [last] = await collection.page(tenant, { where: within, limit: 1 })
    const seq = last ? Number(last.doc['seq']) + 1 : 1
    if (await collection.insert(tenant, { ...doc, ...within, seq }, writeOptions())) return seq
    const existing = await collection.get(tenant, identity)
    if (existing) return Number(existing.doc['seq'])
  }
  throw storeUnavailable('no free number found')
}

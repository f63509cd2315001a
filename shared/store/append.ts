import type { JsonObject } from '../events.ts'
import type { TenantId } from '../tenant.ts'
import type { Collection, Fields, WriteOptions } from './port.ts'
import { storeUnavailable } from './unavailable.ts'

export type Addition = {
  /** The fields that the documents of one line agree in: the `within` of the collection's order. */
  line: Fields
  /** The unique fields by which the document is known again when it is in the line already. */
  same: Fields
  doc: JsonObject
  /** Asked before each write. */
  options?: () => WriteOptions
}

/** More losses than there are processes mean that something else than a race is wrong. */
const MAX_TRIES = 100

/**
 * Inserts a document at the end of a line that is numbered by `seq` from 1: the last number plus one, again when another
 * process was faster. Resolves with its number, the one it has already when it is in the line.
 */
export async function appendNext(collection: Collection, tenant: TenantId, addition: Addition): Promise<number> {
  const { line, same, doc, options = () => ({}) } = addition
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const [last] = await collection.page(tenant, { where: line, limit: 1 })
    const seq = last ? Number(last.doc['seq']) + 1 : 1
    if (await collection.insert(tenant, { ...doc, ...line, seq }, options())) return seq
    const known = await collection.get(tenant, same)
    if (known) return Number(known.doc['seq'])
  }
  throw storeUnavailable('no number was free')
}

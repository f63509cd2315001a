import { LEDGER } from './ledger.ts'
import { MEMORY_ENTRIES } from './memory-entries.ts'
import type { CollectionSpec } from './port.ts'

/** Every collection of the product; both stores are opened with them. */
export const COLLECTIONS: readonly CollectionSpec[] = [LEDGER, MEMORY_ENTRIES]

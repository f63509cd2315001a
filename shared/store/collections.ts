import { LEDGER } from './ledger.ts'
import { MEMORY_ENTRIES } from './memory-entries.ts'
import type { CollectionSpec } from './port.ts'

/** All that the product keeps: what every adapter is opened with. */
export const COLLECTIONS: readonly CollectionSpec[] = [LEDGER, MEMORY_ENTRIES]

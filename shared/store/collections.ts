import { INSTANCE_CAPABILITIES } from './instance-capabilities.ts'
import { LEDGER } from './ledger.ts'
import { MEMORY_ENTRIES } from './memory-entries.ts'
import type { CollectionSpec } from './port.ts'
import { CONFIG_CHANGES, CONFIGURED_TENANTS, TENANT_CONFIGS } from './tenant-configs.ts'

/** Every collection of the product; both stores are opened with them. */
export const COLLECTIONS: readonly CollectionSpec[] = [
  LEDGER,
  MEMORY_ENTRIES,
  TENANT_CONFIGS,
  CONFIGURED_TENANTS,
  CONFIG_CHANGES,
  INSTANCE_CAPABILITIES,
]

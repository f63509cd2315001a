import { openStandaloneStore } from '../../../services/wiring/open-store.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { EMPTY_CONFIG, type InstanceType, type StoredInstance } from '../../../shared/tenancy/tenant-config/config.ts'

/**
 * Writes instances into the database of a standalone form that does not run: as one that allowed private addresses before has stored
 * them, or a backup of another server.
 */
export async function storeInstances(dataDir: string, instances: readonly Address[]): Promise<void> {
  const config = loadConfig({ DATA_DIR: dataDir }, 'standalone')
  const store = await openStandaloneStore(config)
  if (!store) throw new Error('the standalone form always has a store')
  await store.tenantConfigs.update(DEFAULT_TENANT, () => ({ ...EMPTY_CONFIG, instances: instances.map(toInstance) }))
  await store.close()
}

export type Address = { name: string; type: InstanceType; url: string }

function toInstance(address: Address): StoredInstance {
  const at = '2026-11-22T09:00:00.000Z'
  return { ...address, revision: `rev_${address.name}`, created_at: at, updated_at: at }
}

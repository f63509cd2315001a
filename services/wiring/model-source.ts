import { createPrices, createWindows } from '../../shared/agent/providers/prices.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { meterModels } from '../../shared/work/runs/metered-models.ts'
import { createServerModels, type ModelSource } from '../../shared/work/runs/models.ts'
import { TenantModels } from '../../shared/work/runs/tenant-models.ts'
import { openModels } from './open-models.ts'
import type { OpenedTenantConfig } from './tenant-config.ts'

/** Opens the server's models, and those of tenants where runtime configuration is enabled. */
export async function openModelSource(
  settings: Settings['worker']['models'],
  tenantConfig: OpenedTenantConfig | undefined,
  log: Log,
): Promise<ModelSource> {
  const facts = { priceOf: createPrices(settings.modelPrices), windowOf: createWindows() }
  const server = { ...(await openModels(settings, log)), smallModel: settings.smallModel, ...facts }
  if (!tenantConfig) return createServerModels(server)
  const { configs, credentials, openInstance, limits } = tenantConfig
  const models = new TenantModels({ configs, credentials, server, openProvider: openInstance, log })
  return meterModels(models, limits.meter)
}

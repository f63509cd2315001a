import { createPrices, createWindows } from '../../../shared/agent/providers/prices.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import type { Settings } from '../../../shared/platform/config/groups.ts'
import { createServerModels, type ModelSource, meterModels } from '../../../shared/work/runs/models.ts'
import { TenantModels } from '../../../shared/work/runs/tenant-models.ts'
import type { OpenedTenantConfig } from '../open-tenant-config.ts'
import { createModels } from './create-models.ts'
import { createProbes } from './create-probes.ts'

/** Opens the server's models, and those of tenants where runtime configuration is enabled. */
export async function createModelSource(
  settings: Settings['worker']['models'],
  tenantConfig: OpenedTenantConfig | undefined,
  log: Log,
): Promise<ModelSource> {
  const facts = { priceOf: createPrices(settings.modelPrices), windowOf: createWindows() }
  const server = { ...(await createModels(settings, log)), smallModel: settings.smallModel, ...facts }
  if (!tenantConfig) return createServerModels(server)
  const { configs, credentials, openInstance, limits } = tenantConfig
  const probed = createProbes({ capabilities: tenantConfig.capabilities, tenantConfig })
  const models = new TenantModels({ configs, credentials, server, createProvider: openInstance, probed, log })
  return meterModels(models, limits.meter)
}

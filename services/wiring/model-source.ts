import type { Config } from '../../shared/config/config.ts'
import type { Log } from '../../shared/log.ts'
import { createPrices, createWindows } from '../../shared/providers/prices.ts'
import { meterModels } from '../runs/metered-models.ts'
import { createServerModels, type ModelSource } from '../runs/models.ts'
import { TenantModels } from '../runs/tenant-models.ts'
import { openModels } from './open-models.ts'
import type { OpenedTenantConfig } from './tenant-config.ts'

/** Opens the server's models, and those of tenants where runtime configuration is enabled. */
export async function openModelSource(
  config: Pick<Config, 'model' | 'fallback' | 'modelPrices' | 'httpsProxy' | 'noProxy' | 'smallModel'>,
  tenantConfig: OpenedTenantConfig | undefined,
  log: Log,
): Promise<ModelSource> {
  const facts = { priceOf: createPrices(config.modelPrices), windowOf: createWindows() }
  const server = { ...(await openModels(config, log)), smallModel: config.smallModel, ...facts }
  if (!tenantConfig) return createServerModels(server)
  const { configs, credentials, openInstance, limits } = tenantConfig
  const models = new TenantModels({ configs, credentials, server, openProvider: openInstance, log })
  return meterModels(models, limits.meter)
}

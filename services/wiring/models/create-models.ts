import { apiBase } from '../../../shared/agent/providers/base-url.ts'
import type { CallPool } from '../../../shared/agent/providers/batch/pool/pool.ts'
import { type PooledCallsDeps, pooledCalls } from '../../../shared/agent/providers/batch/pool/pooled-calls.ts'
import type { ModelRoute } from '../../../shared/agent/providers/port.ts'
import { createPrices, createWindows } from '../../../shared/agent/providers/prices.ts'
import type { Log } from '../../../shared/kernel/log.ts'
import { PROVIDER_TYPES } from '../../../shared/kernel/provider-types.ts'
import type { Settings } from '../../../shared/platform/config/groups.ts'
import type { ModelTarget } from '../../../shared/platform/config/model.ts'
import { createServerModels, type ModelSource, meterModels } from '../../../shared/work/runs/models.ts'
import { TenantModels } from '../../../shared/work/runs/tenant-models.ts'
import type { OpenedTenantConfig } from '../open-tenant-config.ts'
import { createProbes } from './create-probes.ts'
import { createProvider as openProvider, type ProviderSettings } from './create-provider.ts'

type OwnRoutes = { primary: ModelRoute | undefined; fallback: ModelRoute | undefined }

type ModelSettings = Pick<Settings['worker']['models'], 'model' | 'fallback'> &
  Partial<Pick<Settings['worker']['models'], 'httpsProxy' | 'noProxy'>>

/** Creates the providers of the server's model and of its fallback (D1.3 MODEL). The cluster form may have no model (D1.4). */
export async function createModels(
  { model, fallback, httpsProxy, noProxy }: ModelSettings,
  log?: Log,
): Promise<OwnRoutes> {
  const onLeftOut = (message: string) => log?.warn(message)
  const proxy = httpsProxy === undefined ? undefined : { url: httpsProxy, except: noProxy }
  const open = (target: ModelTarget) => openRoute(target, { onLeftOut, proxy })
  return { primary: model && (await open(model)), fallback: fallback && (await open(fallback)) }
}

async function openRoute(
  { provider: type, model, ...address }: ModelTarget,
  common: Pick<ProviderSettings, 'onLeftOut' | 'proxy'>,
): Promise<ModelRoute> {
  return { provider: await openProvider({ type, ...address, ...common }), model }
}

/**
 * Opens the server's models, and those of tenants where runtime configuration is enabled. `pool`: calls of runs with a
 * deadline wait there for a batch.
 */
export async function createModelSource(
  settings: Settings['worker']['models'],
  tenantConfig: OpenedTenantConfig | undefined,
  log: Log,
  pool?: CallPool,
): Promise<ModelSource> {
  const facts = { priceOf: createPrices(settings.modelPrices), windowOf: createWindows() }
  const server = { ...(await createModels(settings, log)), smallModel: settings.smallModel, ...facts }
  if (!tenantConfig) return createServerModels(server)
  const { configs, credentials, openInstance, limits } = tenantConfig
  const probed = createProbes({ capabilities: tenantConfig.capabilities, tenantConfig })
  const createProvider = pool ? withPool(openInstance, pool, log) : openInstance
  const models = new TenantModels({ configs, credentials, server, createProvider, probed, log })
  return meterModels(models, limits.meter)
}

type OpenInstance = OpenedTenantConfig['openInstance']

const withPool =
  (openInstance: OpenInstance, pool: CallPool, log: Log): OpenInstance =>
  async (instance, credentials) => {
    const provider = await openInstance(instance, credentials)
    const { name, type, url } = instance
    if (!PROVIDER_TYPES[type].hasBatches) return provider
    const open: PooledCallsDeps['open'] = (transportOf) => openInstance(instance, credentials, transportOf)
    const base = apiBase(type, url).href
    return { ...provider, pooled: pooledCalls({ pool, instance: name, base, open, now: () => new Date(), log }) }
  }

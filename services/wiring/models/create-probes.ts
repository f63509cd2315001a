import { createCache } from '../../../shared/kernel/cache.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { findInstance } from '../../../shared/tenancy/tenant-config/settings.ts'
import type { CapabilityStore, ProbeResult } from '../../../shared/tenancy/tenant-config/store/instance-capabilities.ts'
import type { OpenedTenantConfig } from '../open-tenant-config.ts'

type Deps = { capabilities: CapabilityStore; tenantConfig: Pick<OpenedTenantConfig, 'configs'> | undefined }
export type ProbedCapabilities = ProbeResult['capabilities'] | undefined

const MAX_PROBES = 10_000
const PROBED_MS = 10_000

/**
 * Returns the result of the latest probe of a model, cached for 10 s; `undefined` when there is none. Without the name of an instance, that of the
 * tenant's main route is used.
 */
export function createProbes({ capabilities, tenantConfig }: Deps) {
  const known = createCache<string, { found: ProbedCapabilities }>(MAX_PROBES, { ttl: PROBED_MS })
  return async (tenant: TenantId, model: string, given?: string): Promise<ProbedCapabilities> => {
    const config = await tenantConfig?.configs.get(tenant)
    const name = given ?? config?.routing.main?.instance
    if (!config || name === undefined) return undefined
    const instance = findInstance(config, name)
    const key = JSON.stringify([tenant, instance.name, instance.revision, model])
    const cached = known.get(key)
    if (cached) return cached.found
    const { probes } = await capabilities.read(tenant, instance)
    const found = probes.find((probe) => probe.model === model)?.capabilities
    known.set(key, { found })
    return found
  }
}

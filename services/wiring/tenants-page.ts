import { listTenants, type TenantsDeps } from '../../shared/tenancy/usage/tenants.ts'
import type { OpsPages } from '../ops/open-ops.ts'
import type { OpenedStore } from './open-store.ts'
import type { OpenedTenantConfig } from './open-tenant-config.ts'

type Parts = Pick<TenantsDeps, 'loads'> & {
  store: Pick<OpenedStore, 'usage'> | undefined
  tenantConfig: Pick<OpenedTenantConfig, 'limits'> | undefined
}

/** Reads the page of tenants, for a process that can ask all others for their figures. */
export const tenantsPage = ({ loads, store, tenantConfig }: Parts): OpsPages => ({
  tenants: (range) => listTenants({ loads, usage: store?.usage, limits: tenantConfig?.limits.settings }, range),
})

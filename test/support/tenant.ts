import type { TenantId } from '../../shared/kernel/tenant.ts'

/** The tenant of this name. */
export const tenantId = (name: string): TenantId => name as TenantId

/** The tenants of these names, in their order. */
export const tenantIds = <Names extends readonly string[]>(...names: Names) =>
  names as unknown as { [Index in keyof Names]: TenantId }

/** A tenant's id, as authentication gave it. Storage and broker functions take it first, so that nothing crosses tenants by accident. */
export type TenantId = string & { readonly __brand: 'TenantId' }

/** The tenant of development mode and of the standalone form (D3.4). */
export const DEFAULT_TENANT = 't_default' as TenantId

const PATTERN = /^[A-Za-z0-9._:-]{1,128}$/

/** Reads a tenant claim; `undefined` when it is not a string of D3.2's form. */
export function parseTenant(claim: unknown): TenantId | undefined {
  return typeof claim === 'string' && PATTERN.test(claim) ? (claim as TenantId) : undefined
}

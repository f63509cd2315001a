/** The id of an authenticated tenant. It is the first parameter of storage and broker functions, so that none can forget it. */
export type TenantId = string & { readonly __brand: 'TenantId' }

/** The tenant of development mode and of the standalone form (D3.4). */
export const DEFAULT_TENANT = 't_default' as TenantId

/** The owner, in the store, of documents that belong to no tenant. No token can name it: the form of D3.2 has no `*`. */
export const SYSTEM_TENANT = '*system*' as TenantId

const PATTERN = /^[A-Za-z0-9._:-]{1,128}$/

/** Reads a tenant claim; `undefined` when it is not a string of the form that D3.2 requires. */
export function parseTenant(claim: unknown): TenantId | undefined {
  return typeof claim === 'string' && PATTERN.test(claim) ? (claim as TenantId) : undefined
}

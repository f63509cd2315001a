import { AppError } from '../../kernel/errors.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Keyring } from '../secrets/keyring.ts'
import { rewrap, type SealContext, type Sealed } from '../secrets/seal.ts'
import { type TenantConfig, toConfig } from './config.ts'
import type { TenantConfigStore } from './store/tenant-configs.ts'

/** The result for one tenant. `failures` are messages without any key; the records that they name are unchanged. */
export type TenantRewrap = { tenant: TenantId; rewrapped: number; current: number; failures: string[] }

/** Yields the result of each tenant that has a configuration, in the order of their names. */
export async function* rewrapAll(store: TenantConfigStore, keyring: Keyring): AsyncGenerator<TenantRewrap> {
  let after: TenantId | undefined
  for (;;) {
    const page = await store.tenants(after)
    for (const tenant of page) yield await rewrapTenant(store, tenant, keyring)
    after = page.at(-1)
    if (after === undefined) return
  }
}

/**
 * Wraps every record of a tenant under the primary master key, by one compare-and-set, so that a concurrent change is kept. Stores
 * nothing when all records are under that key already.
 */
export async function rewrapTenant(
  store: TenantConfigStore,
  tenant: TenantId,
  keyring: Keyring,
): Promise<TenantRewrap> {
  const found = rewrapConfig(toConfig(await store.read(tenant)), tenant, keyring)
  if (found.rewrapped === 0) return resultOf(found)
  let stored = found
  await store.update(tenant, (doc) => {
    stored = rewrapConfig(toConfig(doc), tenant, keyring)
    return { ...stored.config }
  })
  return resultOf(stored)
}

type Rewrapped = TenantRewrap & { config: TenantConfig }

function rewrapConfig(config: TenantConfig, tenant: TenantId, keyring: Keyring): Rewrapped {
  const result: TenantRewrap = { tenant, rewrapped: 0, current: 0, failures: [] }
  const renew = <T extends { name: string; sealed?: Sealed }>(kind: SealContext['kind'], item: T): T => {
    if (!item.sealed) return item
    try {
      const sealed = rewrap(item.sealed, { tenant, kind, name: item.name }, keyring)
      result[sealed ? 'rewrapped' : 'current'] += 1
      return sealed ? { ...item, sealed } : item
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause
      result.failures.push(cause.message)
      return item
    }
  }
  const secrets = config.secrets.map((secret) => renew('secret', secret))
  const instances = config.instances.map((instance) => renew('instance', instance))
  const webhooks = config.webhooks.map((webhook) => renew('webhook', webhook))
  return { ...result, config: { ...config, secrets, instances, webhooks } }
}

const resultOf = ({ tenant, rewrapped, current, failures }: Rewrapped): TenantRewrap => ({
  tenant,
  rewrapped,
  current,
  failures,
})

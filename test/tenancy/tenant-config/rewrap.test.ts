import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { seal, unseal } from '../../../shared/tenancy/secrets/seal.ts'
import {
  EMPTY_CONFIG,
  type StoredInstance,
  type StoredSecret,
  type StoredWebhook,
  type TenantConfig,
} from '../../../shared/tenancy/tenant-config/config.ts'
import { rewrapAll, rewrapTenant, type TenantRewrap } from '../../../shared/tenancy/tenant-config/rewrap.ts'
import type { TenantConfigStore } from '../../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import { tenantId } from '../../support/tenant.ts'

const KEY = 'sk-canary-0123456789'
const AT = '2026-11-22T09:00:00.000Z'
const [old, fresh] = [randomBytes(32), randomBytes(32)]
const before = createKeyring(old)
const rotated = createKeyring(fresh, [old])
const after = createKeyring(fresh)
const ACME = tenantId('acme')

const secretOf = (tenant: string, name: string, ring = before): StoredSecret => ({
  name,
  key: 'sk-c…',
  sealed: seal(KEY, { tenant, kind: 'secret', name }, ring),
  updated_at: AT,
})

const instanceOf = (tenant: string, name: string): StoredInstance => ({
  name,
  type: 'openai',
  key: 'sk-c…',
  sealed: seal(JSON.stringify({ key: KEY }), { tenant, kind: 'instance', name }, before),
  revision: 'rev_1',
  created_at: AT,
  updated_at: AT,
})

const webhookOf = (tenant: string, name: string): StoredWebhook => ({
  id: 'hook_1',
  name,
  url: 'https://ci.example.com/',
  events: ['run.ended'],
  enabled: true,
  sealed: seal(JSON.stringify({ secret: KEY }), { tenant, kind: 'webhook', name }, before),
  created_at: AT,
  updated_at: AT,
})

const configOf = (tenant: string): TenantConfig => ({
  ...EMPTY_CONFIG,
  secrets: [secretOf(tenant, 'team')],
  instances: [
    instanceOf(tenant, 'main'),
    { ...instanceOf(tenant, 'open'), sealed: undefined } as unknown as StoredInstance,
  ],
  webhooks: [webhookOf(tenant, 'ci')],
})

/** A store in memory with pages of three tenants. */
function storeOf(configs: Record<string, TenantConfig>) {
  const docs = new Map<string, JsonObject>(Object.entries(configs).map(([tenant, config]) => [tenant, { ...config }]))
  const updates: string[] = []
  const store: Pick<TenantConfigStore, 'read' | 'update' | 'tenants'> = {
    read: async (tenant) => docs.get(tenant),
    async update(tenant, change) {
      const doc = change(docs.get(tenant))
      docs.set(tenant, doc)
      updates.push(tenant)
      return doc
    },
    tenants: async (from) =>
      [...docs.keys()]
        .toSorted()
        .filter((tenant) => from === undefined || tenant > from)
        .slice(0, 3) as TenantId[],
  }
  const config = (tenant: string) => docs.get(tenant) as unknown as TenantConfig
  return { store: store as TenantConfigStore, docs, updates, config }
}

async function resultsOf(store: TenantConfigStore): Promise<TenantRewrap[]> {
  const results: TenantRewrap[] = []
  for await (const result of rewrapAll(store, rotated)) results.push(result)
  return results
}

describe('wrapping stored secrets under a new master key', () => {
  it('every secret, instance and webhook of every tenant opens with the new key alone afterwards, and nothing else has changed', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const configs = Object.fromEntries(names.map((name) => [name, configOf(name)]))
    const { store, config } = storeOf(configs)
    const results = await resultsOf(store)
    expect(results.map(({ tenant }) => tenant)).to.deep.equal(names)
    for (const { tenant, ...counts } of results) {
      expect(counts).to.deep.equal({ rewrapped: 3, current: 0, failures: [] })
      const [secret] = config(tenant).secrets
      const [instance] = config(tenant).instances
      const [webhook] = config(tenant).webhooks
      if (!secret || !instance?.sealed || !webhook) throw new Error('a record was lost')
      expect(unseal(secret.sealed, { tenant, kind: 'secret', name: 'team' }, after)).to.equal(KEY)
      expect(unseal(instance.sealed, { tenant, kind: 'instance', name: 'main' }, after)).to.include(KEY)
      expect(unseal(webhook.sealed, { tenant, kind: 'webhook', name: 'ci' }, after)).to.include(KEY)
      const withoutSealed = (value: unknown) => JSON.stringify(value, (name, each) => (name === 'sealed' ? 0 : each))
      expect(withoutSealed(config(tenant))).to.equal(withoutSealed(configs[tenant]))
    }
  })

  it('a second time stores nothing, so that no process reads anything again', async () => {
    const { store, updates } = storeOf({ acme: configOf('acme') })
    await resultsOf(store)
    expect(updates).to.deep.equal(['acme'])
    expect(await resultsOf(store)).to.deep.equal([{ tenant: 'acme', rewrapped: 0, current: 3, failures: [] }])
    expect(updates).to.deep.equal(['acme'])
  })

  it('a change that is stored between the reading and the writing is kept', async () => {
    const { store, docs, config } = storeOf({ acme: configOf('acme') })
    const { read } = store
    store.read = async (tenant) => {
      const doc = await read(tenant)
      docs.set(tenant, { ...configOf('acme'), secrets: [secretOf('acme', 'newer')] })
      return doc
    }
    await rewrapTenant(store, ACME, rotated)
    expect(config('acme').secrets.map(({ name, sealed }) => [name, sealed.kid])).to.deep.equal([
      ['newer', after.primary.id],
    ])
  })

  it('a record under a key that is missing is named and left as it is, and all others are wrapped', async () => {
    const stranger = createKeyring(randomBytes(32))
    const config = { ...configOf('acme'), secrets: [secretOf('acme', 'lost', stranger), secretOf('acme', 'team')] }
    const { store, config: stored } = storeOf({ acme: config })
    const [result] = await resultsOf(store)
    expect(result).to.deep.include({ rewrapped: 3, current: 0 })
    expect(result?.failures).to.have.lengthOf(1)
    expect(result?.failures[0]).to.include('secret lost').and.include(stranger.primary.id)
    expect(stored('acme').secrets[0]).to.deep.equal(config.secrets[0])
  })

  it('an error that no record has ends the work, and stores nothing', async () => {
    const { store, updates } = storeOf({ acme: configOf('acme') })
    const find = () => {
      throw new Error('a bug')
    }
    const result = rewrapTenant(store, ACME, { ...rotated, find }).catch((cause: Error) => cause.message)
    expect([await result, updates]).to.deep.equal(['a bug', []])
  })

  it('a record that was copied from another tenant is named and not wrapped', async () => {
    const { store } = storeOf({ acme: { ...EMPTY_CONFIG, secrets: [secretOf('globex', 'team')] } })
    const [result] = await resultsOf(store)
    expect(result).to.deep.include({ rewrapped: 0 })
    expect(result?.failures[0]).to.include('cannot be decrypted')
  })
})

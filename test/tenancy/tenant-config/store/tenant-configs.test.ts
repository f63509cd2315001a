import { expect } from 'chai'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { createTenantConfigStore } from '../../../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import { tenantIds } from '../../../support/tenant.ts'
import { useTestStore } from '../../../support/test-store.ts'

const [A, B] = tenantIds('a', 'b')
const changed = (id: string, more: JsonObject = {}): JsonObject => ({
  ...more,
  last_change: { id, at: `2026-01-01T00:00:0${id}.000Z` },
})

describe('the stored configurations of tenants', () => {
  const opened = useTestStore({ perTest: true })

  it('are made from the one before, and are each tenant’s own', async () => {
    const configs = createTenantConfigStore(opened.store)
    expect(await configs.read(A)).to.equal(undefined)
    expect(await configs.update(A, (before) => changed('1', { isFirst: before === undefined }))).to.include({
      isFirst: true,
    })
    await configs.update(A, (before) => changed('2', { before: before?.['last_change'] }))
    expect(await configs.read(A)).to.deep.include(changed('2', { before: changed('1')['last_change'] }))
    expect(await configs.read(B)).to.equal(undefined)
  })

  it('are left as they are by a change that fails', async () => {
    const configs = createTenantConfigStore(opened.store)
    await configs.update(A, () => changed('1'))
    const failed = await configs
      .update(A, () => {
        throw new Error('refused')
      })
      .catch(String)
    expect(failed).to.equal('Error: refused')
    expect(await configs.read(A)).to.deep.include(changed('1'))
    expect(await configs.changes(9)).to.have.length(1)
  })

  it('lose no change of several at the same time, in one process and in two', async () => {
    const configs = createTenantConfigStore(opened.store)
    const other = createTenantConfigStore(opened.store)
    const add = (n: number) => (before: JsonObject | undefined) =>
      changed(String(n), { all: [...((before?.['all'] ?? []) as number[]), n] })
    await Promise.all([0, 1, 2, 3, 4, 5].map((n) => (n % 2 === 0 ? configs : other).update(A, add(n))))
    expect((await configs.read(A))?.['all']).to.have.members([0, 1, 2, 3, 4, 5])
  })

  it('are listed as changes, numbered and newest first', async () => {
    const configs = createTenantConfigStore(opened.store)
    for (const [i, tenant] of [A, B, A].entries()) await configs.update(tenant, () => changed(String(i)))
    expect(await configs.changes(2)).to.deep.equal([
      { seq: 3, tenant: A },
      { seq: 2, tenant: B },
    ])
  })

  it('D28b: have each change in their record, also one that a process has stored and not recorded', async () => {
    const configs = createTenantConfigStore(opened.store)
    await configs.update(A, () => changed('1'))
    await opened.store.collection({ name: 'tenant_configs', key: ['id'] }).delete(A, { id: 'config' })
    await opened.store.collection({ name: 'tenant_configs', key: ['id'] }).insert(A, { id: 'config', ...changed('2') })
    const idsOf = async () => (await configs.audit(A, { limit: 9 })).map(({ id }) => id)
    expect(await idsOf()).to.deep.equal(['2', '1'])
    await configs.update(A, () => changed('3'))
    expect([await idsOf(), await configs.audit(B, { limit: 9 })]).to.deep.equal([['3', '2', '1'], []])
  })

  it('tell the tenants that have one by name, behind the last one of a page', async () => {
    const configs = createTenantConfigStore(opened.store)
    for (const tenant of [B, A, B]) await configs.update(tenant, () => changed('1'))
    expect([await configs.tenants(undefined), await configs.tenants('a')]).to.deep.equal([[A, B], [B]])
  })
})

import { expect } from 'chai'
import { createSpendingStore, SPENDING } from '../../../../shared/tenancy/limits/store/spending.ts'
import { watchStore } from '../../../contract/watched-store.ts'
import { aroundStore } from '../../../support/around-store.ts'
import { tenantId } from '../../../support/tenant.ts'
import { useTestStore } from '../../../support/test-store.ts'

const TENANT = tenantId('t_1')
const OTHERS = { day: '2026-11-28', process: 'another' }
const spent = (tokens: number) => ({ day: OTHERS.day, process: 'p', spent: { tokens, costUsd: tokens / 1_000 } })

describe('the stored spending', () => {
  const opened = useTestStore()

  it('of a process is read once, and then written with one command each time', async () => {
    const { watched, operations } = watchStore(opened.store)
    const spending = createSpendingStore(watched)
    for (const tokens of [1, 2, 3]) await spending.put(TENANT, spent(tokens))
    expect(operations).to.deep.equal(['get spending', 'insert spending', 'replace spending', 'replace spending'])
    expect(await spending.ofOthers(TENANT, OTHERS)).to.deep.equal({ tokens: 3, costUsd: 0.003 })
    const restarted = createSpendingStore(opened.store)
    await restarted.put(TENANT, spent(4))
    await spending.put(TENANT, spent(5))
    expect(await restarted.ofOthers(TENANT, OTHERS)).to.deep.equal({ tokens: 5, costUsd: 0.005 })
  })

  it('is written after an answer that was lost, whether the write was done or not', async () => {
    let losing: 'before' | 'after' | undefined
    const lossy = aroundStore(opened.store, async (method, act) => {
      if (method !== 'replaceIfVersion' || !losing) return act()
      if (losing === 'after') await act()
      throw new Error('lost')
    })
    const tenant = tenantId('t_lossy')
    const spending = createSpendingStore(lossy)
    await spending.put(tenant, spent(1))
    for (const when of ['before', 'after'] as const) {
      losing = when
      await spending.put(tenant, spent(2)).catch(() => {})
      losing = undefined
      await spending.put(tenant, spent(3))
      expect(await spending.ofOthers(tenant, OTHERS)).to.deep.equal({ tokens: 3, costUsd: 0.003 })
    }
    expect((await opened.store.collection(SPENDING).get(tenant, { day: OTHERS.day, process: 'p' }))?.version).to.equal(
      4,
    )
  })
})

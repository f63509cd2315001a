import { expect } from 'chai'
import type { Collection, CollectionSpec, Store } from '../../shared/platform/store/port.ts'
import { tenantId } from '../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')

const PARCELS: CollectionSpec = { name: 'parcels', key: ['id'], total: { within: ['owner'], of: 'grams' } }
/** The collections that `totalsContract` adds up. */
export const TOTALLED: readonly CollectionSpec[] = [PARCELS]

/** The tests of totals that every store passes. `openAnother` opens the store for another process. */
export function totalsContract(store: () => Store, openAnother: () => Promise<Store>): void {
  let parcels: Collection
  let ids = 0
  const send = (owner: string, grams: number, tenant = TENANT) => parcels.insert(tenant, { id: ++ids, owner, grams })
  before(() => {
    parcels = store().collection(PARCELS)
  })

  it('a total counts and adds up the documents of one owner and tenant, as they are now', async () => {
    expect(await parcels.total(TENANT, { owner: 'anna' })).to.deep.equal({ count: 0, sum: 0 })
    for (const grams of [5, 0, 2 ** 40]) await send('anna', grams)
    await send('otto', 7)
    await send('anna', 9, OTHER)
    expect(await parcels.total(TENANT, { owner: 'anna' })).to.deep.equal({ count: 3, sum: 2 ** 40 + 5 })
    expect(await parcels.total(OTHER, { owner: 'anna' })).to.deep.equal({ count: 1, sum: 9 })
    await parcels.replaceIfVersion(TENANT, { doc: { id: 1, owner: 'anna', grams: 6 }, version: 1 })
    await parcels.delete(TENANT, { id: 3 })
    expect(await parcels.total(TENANT, { owner: 'anna' })).to.deep.equal({ count: 2, sum: 6 })
  })

  it('of inserts at the same time, also in two processes, one at least sees them all', async () => {
    const other = await openAnother()
    try {
      const processes = [parcels, other.collection(PARCELS)]
      const seen = await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          const at = processes[i % 2] ?? parcels
          await at.insert(TENANT, { id: `p${i}`, owner: 'race', grams: 1 })
          return at.total(TENANT, { owner: 'race' })
        }),
      )
      expect(Math.max(...seen.map(({ count }) => count))).to.equal(40)
    } finally {
      await other.close()
    }
  })

  it('a total by other fields, or of a collection that has none, throws', async () => {
    expect(await parcels.total(TENANT, { id: 1 }).catch(String)).to.include('parcels cannot be looked up by id')
    expect(await parcels.total(TENANT, {}).catch(String)).to.include('parcels.owner is neither')
  })
}

import { expect } from 'chai'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { MemoryRunPlaces } from '../../../shared/tenancy/limits/memory-places.ts'
import { placesContract } from '../../contract/run-places.ts'

describe('the places of concurrent runs in memory', () => {
  placesContract(() => new MemoryRunPlaces())

  it('a place that nobody renews is free after its time', async () => {
    let now = 0
    const places = new MemoryRunPlaces(() => now)
    const take = async (runId: string) => {
      const { place } = await places.take({ tenant: TENANT, runId }, { tenant: 1, customer: null })
      return place
    }
    await take('run_1')
    now = 44_999
    expect(await take('run_2')).to.equal('full')
    now = 45_000
    expect(await take('run_2')).to.equal('taken')
  })
})

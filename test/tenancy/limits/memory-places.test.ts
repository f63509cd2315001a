import { expect } from 'chai'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { MemoryRunPlaces } from '../../../shared/tenancy/limits/memory-places.ts'
import { placesContract } from '../../contract/run-places.ts'

describe('the places of concurrent runs in memory', () => {
  placesContract(() => new MemoryRunPlaces())

  it('a place that nobody renews is free after its time', async () => {
    let now = 0
    const places = new MemoryRunPlaces(() => now)
    await places.take(TENANT, 'run_1', 1)
    now = 44_999
    expect(await places.take(TENANT, 'run_2', 1)).to.equal(false)
    now = 45_000
    expect(await places.take(TENANT, 'run_2', 1)).to.equal(true)
  })
})

import { expect } from 'chai'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { RunPlaces } from '../../shared/tenancy/limits/port.ts'
import { tenantId } from '../support/tenant.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')

/** The tests of the places of runs, which those in memory and those in Redis pass. */
export function placesContract(open: () => RunPlaces): void {
  let places: RunPlaces
  beforeEach(() => {
    places = open()
  })
  afterEach(async () => {
    for (const tenant of [TENANT, OTHER]) for (let i = 0; i < 20; i++) await places.release(tenant, `run_${i}`)
  })

  it('of many runs that start at the same time exactly the limit gets a place, in each tenant', async () => {
    const take = (tenant: TenantId) =>
      Promise.all(Array.from({ length: 20 }, (_, i) => places.take(tenant, `run_${i}`, 7)))
    const taken = await Promise.all([take(TENANT), take(OTHER)])
    expect(taken.map((each) => each.filter(Boolean).length)).to.deep.equal([7, 7])
    expect(await places.count(TENANT)).to.equal(7)
  })

  it('a place that is given back is free, and a run that has one keeps it', async () => {
    expect(await places.take(TENANT, 'run_1', 1)).to.equal(true)
    expect(await places.take(TENANT, 'run_1', 1)).to.equal(true)
    expect(await places.take(TENANT, 'run_2', 1)).to.equal(false)
    await places.release(TENANT, 'run_1')
    expect(await places.take(TENANT, 'run_2', 1)).to.equal(true)
  })

  it('a place that was lost is held again by its renewal', async () => {
    await places.renew(TENANT, ['run_1', 'run_2'])
    expect(await places.count(TENANT)).to.equal(2)
    expect(await places.take(TENANT, 'run_3', 2)).to.equal(false)
  })
}

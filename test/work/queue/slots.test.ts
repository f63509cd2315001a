import { expect } from 'chai'
import fc from 'fast-check'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { mostSlots, type Slot, Slots } from '../../../shared/work/queue/slots.ts'
import { tenantIds } from '../../support/tenant.ts'

const [A, B, C] = tenantIds('a', 'b', 'c')
const LIMITS = { max: 4, maxPerTenant: 2 }
const always = () => true

describe('slots of tenants', () => {
  const setUp = (limits = LIMITS) => {
    const slots = new Slots(limits)
    const take = (tenant: TenantId, count: number): (Slot | undefined)[] =>
      Array.from({ length: count }, () => slots.take(tenant, always))
    const taken = (tenant: TenantId, count: number) => take(tenant, count).filter((slot) => slot !== undefined)
    return { slots, taken }
  }
  const asked = (held: readonly Slot[]) => held.map(({ giveWay }) => giveWay.aborted)

  it('one tenant alone takes all slots, and none beyond', () => {
    const { slots, taken } = setUp()
    expect(taken(A, 6)).to.have.length(4)
    expect([slots.isFull, slots.areAllTaken]).to.deep.equal([true, false])
    expect([...slots.tenantsWithShare()]).to.deep.equal([A])
  })

  it('a tenant below its share gets extra slots up to its share, and as many jobs above their share are asked, the last begun first', () => {
    const { taken } = setUp()
    const first = taken(A, 4)
    expect(taken(B, 1)).to.have.length(1)
    expect(asked(first)).to.deep.equal([false, false, false, true])
    expect(taken(B, 3)).to.have.length(1)
    expect(asked(first)).to.deep.equal([false, false, true, true])
    expect(taken(C, 1)).to.deep.equal([])
  })

  it('a slot that was left makes room for one that is below its share; leaving twice leaves once', () => {
    const { slots, taken } = setUp()
    const [first] = taken(A, 2)
    taken(B, 2)
    expect(slots.areAllTaken).to.equal(true)
    first?.leave()
    first?.leave()
    expect(taken(C, 2)).to.have.length(1)
  })

  it('a share as large as all slots is none', () => {
    const { slots, taken } = setUp({ max: 2, maxPerTenant: 2 })
    const held = taken(A, 3)
    expect([held.length, taken(B, 1).length, asked(held)]).to.deep.equal([2, 0, [false, false]])
    expect([...slots.tenantsWithShare()]).to.deep.equal([])
  })

  it('whatever happens: a tenant below its share gets a slot while the shares in use leave one, and never more than the bound are held', () => {
    const tenant = fc.constantFrom(A, B, C)
    const actions = fc.array(fc.oneof(tenant, fc.nat(20)), { maxLength: 100 })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), actions, (max, list) => {
        const limits = { max, maxPerTenant: Math.ceil(max / 2) }
        const slots = new Slots(limits)
        const held: { tenant: TenantId; slot: Slot }[] = []
        const countOf = (each: TenantId) => held.filter((one) => one.tenant === each).length
        for (const action of list) {
          if (typeof action === 'number') {
            held.splice(action, 1)[0]?.slot.leave()
            continue
          }
          const within = [A, B, C].reduce((sum, each) => sum + Math.min(countOf(each), limits.maxPerTenant), 0)
          const isBelow = countOf(action) < limits.maxPerTenant
          const slot = slots.take(action, always)
          expect(slot !== undefined).to.equal(isBelow ? within < max : held.length < max)
          if (slot) held.push({ tenant: action, slot })
          expect(held.length).to.be.at.most(mostSlots(limits))
        }
      }),
    )
  })
})

import { expect } from 'chai'
import { TenantShares } from '../../../shared/platform/fairness/tenant-shares.ts'
import { tenantId } from '../../support/tenant.ts'

const [A, B] = [tenantId('t_1'), tenantId('t_2')]

describe('the shares of tenants in a resource', () => {
  it('a tenant can use its share and no more, and all together no more than there is', () => {
    const shares = new TenantShares({ max: 5, maxPerTenant: 3 })
    shares.add(A, 3)
    expect([shares.exceeded(A, 0), shares.exceeded(A, 1), shares.exceeded(B, 2)]).to.deep.equal([
      undefined,
      'tenant',
      undefined,
    ])
    shares.add(B, 2)
    expect([shares.exceeded(A, 1), shares.exceeded(B, 1)]).to.deep.equal(['tenant', 'all'])
  })

  it('what is given back can be used again', () => {
    const shares = new TenantShares({ max: 5, maxPerTenant: 3 })
    shares.add(A, 3)
    shares.add(B, 2)
    shares.add(A, -3)
    expect([shares.usedBy(A), shares.usedBy(B)]).to.deep.equal([0, 2])
    expect([shares.exceeded(B, 1), shares.exceeded(A, 3)]).to.deep.equal([undefined, undefined])
  })

  it('a tenant that may use everything is refused for the whole, not for its share', () => {
    const shares = new TenantShares({ max: 2, maxPerTenant: 2 })
    shares.add(A, 2)
    expect(shares.exceeded(A, 1)).to.equal('all')
  })
})

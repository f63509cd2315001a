import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { TenantRequests } from '../../../shared/tenancy/limits/tenant-requests.ts'
import { MemoryRateLimiter } from '../../../shared/tenancy/rate/memory.ts'
import { NO_LIMITS } from '../../../shared/tenancy/tenant-config/config.ts'
import { tenantIds } from '../../support/tenant.ts'

const [ONE, OTHER, FREE] = tenantIds('one', 'other', 'free')

describe('the requests of tenants', () => {
  const open = () => {
    const limits = new Map([
      [ONE, 2],
      [OTHER, 1],
    ])
    const known = { of: (tenant: TenantId) => ({ ...NO_LIMITS, requests_per_minute: limits.get(tenant) ?? null }) }
    return new TenantRequests(known, new MemoryRateLimiter({ perMinute: Infinity }))
  }

  it('are counted for each tenant by its own limit', async () => {
    const requests = open()
    const allowed = async (tenant: TenantId) => (await requests.take(tenant))?.isAllowed
    expect([await allowed(ONE), await allowed(ONE), await allowed(ONE)]).to.deep.equal([true, true, false])
    expect([await allowed(OTHER), await allowed(OTHER)]).to.deep.equal([true, false])
    expect(await requests.take(ONE)).to.include({ limit: 2, remaining: 0 })
  })

  it('of control calls, and those of dialects, are counted apart from the others', async () => {
    const requests = open()
    for (const kind of ['all', 'control', 'answers'] as const) {
      const taken = [await requests.take(OTHER, kind), await requests.take(OTHER, kind)]
      expect(
        taken.map((each) => each?.isAllowed),
        kind,
      ).to.deep.equal([true, false])
    }
  })

  it('of a tenant without a limit are not counted', async () => {
    const requests = open()
    expect(await requests.take(FREE)).to.equal(undefined)
  })

  it('are not taken while the limits cannot be read', async () => {
    const away = new AppError('unavailable', 'away')
    const requests = new TenantRequests({ of: () => Promise.reject(away) }, new MemoryRateLimiter({ perMinute: 1 }))
    expect(await requests.take(ONE)?.catch((cause: unknown) => cause)).to.equal(away)
  })
})

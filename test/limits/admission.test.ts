import { expect } from 'chai'
import { RunAdmission } from '../../shared/limits/admission.ts'
import type { KnownLimits } from '../../shared/limits/known-limits.ts'
import { createMemoryRunPlaces } from '../../shared/limits/memory-places.ts'
import { NO_LIMITS } from '../../shared/limits/port.ts'
import { createLog } from '../../shared/log.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/tenant.ts'

describe('the places of admitted runs', () => {
  it('that were handed over are not renewed any more, and are not given back', async () => {
    const renewed: (readonly string[])[] = []
    const third = Promise.withResolvers<void>()
    const places = createMemoryRunPlaces(() => 0)
    const admission = new RunAdmission({
      limits: { of: () => ({ ...NO_LIMITS, concurrent_runs: 5 }) } as unknown as KnownLimits,
      budgets: { refusal: async () => undefined },
      places: {
        ...places,
        renew(tenant, runIds) {
          renewed.push(runIds)
          if (renewed.length === 3) third.resolve()
          return places.renew(tenant, runIds)
        },
      },
      log: createLog({ level: 'error', write: () => {} }),
      renewEveryMs: 5,
    })
    const never = new Promise<void>(() => {})
    for (const runId of ['moved', 'stays']) admission.hold(TENANT, runId, never)
    admission.handOver(TENANT, 'moved')
    await third.promise
    admission.close()
    expect(renewed).to.deep.equal([['moved'], ['stays'], ['stays']])
    expect(await places.count(TENANT)).to.equal(2)
  })
})

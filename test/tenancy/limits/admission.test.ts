import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { RunAdmission } from '../../../shared/tenancy/limits/admission.ts'
import type { BudgetRefusal } from '../../../shared/tenancy/limits/budgets.ts'
import { MemoryRunPlaces } from '../../../shared/tenancy/limits/memory-places.ts'
import { type RunPlaces } from '../../../shared/tenancy/limits/port.ts'
import { type Limits, NO_LIMITS } from '../../../shared/tenancy/tenant-config/config.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const NEVER = new Promise<void>(() => {})

describe('the admission of runs', () => {
  let limits: Limits | Promise<Limits>
  let refusal: BudgetRefusal | undefined
  let arePlacesAway: boolean
  let renewed: string[][]
  let lines: string[]
  let places: RunPlaces
  let admission: RunAdmission

  beforeEach(() => {
    limits = { ...NO_LIMITS, concurrent_runs: 2 }
    refusal = undefined
    arePlacesAway = false
    renewed = []
    lines = []
    const memory = new MemoryRunPlaces(() => 0)
    const unlessAway = async (act: () => Promise<void>) => {
      if (arePlacesAway) throw new AppError('unavailable', 'Redis does not answer')
      await act()
    }
    places = {
      take: (...args) => memory.take(...args),
      count: (tenant) => memory.count(tenant),
      renew(tenant, runIds) {
        renewed.push([...runIds])
        return unlessAway(() => memory.renew(tenant, runIds))
      },
      release: (tenant, runId) => unlessAway(() => memory.release(tenant, runId)),
    }
    admission = new RunAdmission({
      limits: { of: () => limits, peek: () => (limits instanceof Promise ? undefined : limits) },
      budgets: { refusal: async () => refusal },
      places,
      log: createLog({ level: 'debug', write: (line) => lines.push(line) }),
      renewEveryMs: 5,
    })
  })
  afterEach(() => admission.close())

  const renewals = (count: number) => until(() => renewed.length >= count, { what: `${count} renewals` })
  const errorOf = async (runId: string) => {
    try {
      await admission.admit(TENANT, runId)
    } catch (cause) {
      if (cause instanceof AppError) return cause
      throw cause
    }
    return undefined
  }

  it('a run that moved to another process is not renewed here any more, and its place is not given back', async () => {
    for (const runId of ['moved', 'stays']) admission.hold(TENANT, runId, NEVER)
    admission.handOver(TENANT, 'moved')
    await renewals(4)
    expect(renewed.slice(0, 4)).to.deep.equal([['moved'], ['stays'], ['stays'], ['stays']])
    expect(await places.count(TENANT)).to.equal(2)
  })

  it('the place of a run that has ended is given back, and not renewed any more', async () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    admission.hold(TENANT, 'ends', ended)
    admission.hold(TENANT, 'stays', NEVER)
    end()
    await until(async () => (await places.count(TENANT)) === 1, { what: 'the place to be given back' })
    const before = renewed.length
    await renewals(before + 3)
    expect(renewed.slice(before, before + 3).flat()).to.deep.equal(['stays', 'stays', 'stays'])
    expect(await places.count(TENANT)).to.equal(1)
  })

  it('nothing is renewed for a tenant whose last run has ended', async () => {
    admission.hold(TENANT, 'only', Promise.resolve())
    admission.hold(tenantId('other'), 'stays', NEVER)
    await renewals(6)
    expect(renewed).to.deep.equal([['only'], ['stays'], ['stays'], ['stays'], ['stays'], ['stays']])
  })

  it('a run above the limit is refused, and told when to try again; a place that is released is free', async () => {
    expect([await errorOf('a'), await errorOf('b')]).to.deep.equal([undefined, undefined])
    expect(await errorOf('c')).to.include({ kind: 'rate_limit', retryAfterSecs: 5 })
    admission.release(TENANT, 'a')
    expect(await errorOf('c')).to.equal(undefined)
  })

  it('a tenant without limits of runs and budgets is not asked for, and one whose limits are not known yet waits for them', async () => {
    limits = { ...NO_LIMITS, requests_per_minute: 1 }
    expect(admission.admit(TENANT, 'a')).to.equal(undefined)
    admission.hold(TENANT, 'a', NEVER)
    expect(renewed).to.deep.equal([])
    limits = Promise.resolve({ ...NO_LIMITS, concurrent_runs: 1 })
    expect([await errorOf('a'), (await errorOf('b'))?.kind]).to.deep.equal([undefined, 'rate_limit'])
    admission.hold(TENANT, 'b', NEVER)
    expect(renewed).to.deep.equal([['b']])
  })

  it('a run of a tenant whose limits cannot be read is refused, and one that goes on holds its place', async () => {
    limits = Promise.reject(new AppError('unavailable', 'the store does not answer'))
    expect(await errorOf('a')).to.include({ kind: 'unavailable' })
    admission.hold(TENANT, 'moved here', NEVER)
    expect(await places.count(TENANT)).to.equal(1)
  })

  for (const budget of ['tokens_per_day', 'usd_per_day'] as const)
    it(`a run is refused when ${budget} is used up, and takes no place where the runs are not limited`, async () => {
      limits = { ...NO_LIMITS, [budget]: 5 }
      expect(await errorOf('a')).to.equal(undefined)
      expect(await places.count(TENANT)).to.equal(0)
      refusal = { code: 'budget_exhausted', message: 'used up', reason: budget, retryAfterSecs: 60 }
      const used = { kind: 'rate_limit', code: 'budget_exhausted', message: 'used up', retryAfterSecs: 60 }
      expect(await errorOf('a')).to.include(used)
      refusal = { code: 'storage_unavailable', message: 'away', reason: 'budget_unknown', retryAfterSecs: 2 }
      expect(await errorOf('a')).to.include({ kind: 'unavailable', code: 'storage_unavailable', retryAfterSecs: 2 })
    })

  it('places that cannot be reached fail no run, and are renewed when they can be', async () => {
    arePlacesAway = true
    admission.hold(TENANT, 'a', NEVER)
    admission.release(TENANT, 'b')
    await until(() => lines.length >= 3, { what: 'the failures to be logged' })
    expect(lines[0]).to.include('the places of runs cannot be reached').and.include('Redis does not answer')
    arePlacesAway = false
    await until(async () => (await places.count(TENANT)) === 1, { what: 'the place to be held again' })
  })
})

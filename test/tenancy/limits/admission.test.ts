import { expect } from 'chai'
import { MetricsRegistry } from '../../../services/ops/registry.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createLog } from '../../../shared/kernel/log.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { type Ending, RunAdmission, type Start, startOf } from '../../../shared/tenancy/limits/admission.ts'
import type { BudgetRefusal } from '../../../shared/tenancy/limits/budgets.ts'
import { MemoryRunPlaces } from '../../../shared/tenancy/limits/memory-places.ts'
import { type RunPlaces } from '../../../shared/tenancy/limits/port.ts'
import type { StartWait } from '../../../shared/tenancy/limits/start-lines.ts'
import { BATCH_ITEMS } from '../../../shared/tenancy/limits/start-order.ts'
import { type Limits, NO_LIMITS } from '../../../shared/tenancy/tenant-config/config.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const NEVER: Ending = { whenEnded: () => {} }
const at = (ended: Promise<void>): Ending => ({ whenEnded: (listener) => void ended.then(listener) })
const run = (runId: string) => ({ tenant: TENANT, runId })

describe('the admission of runs', () => {
  let limits: Limits | Promise<Limits>
  let refusal: BudgetRefusal | undefined
  let arePlacesAway: boolean
  let renewed: string[][]
  let looks: number
  let lines: string[]
  let metrics: MetricsRegistry
  let places: RunPlaces
  let admission: RunAdmission

  beforeEach(() => {
    limits = { ...NO_LIMITS, concurrent_runs: 2 }
    refusal = undefined
    arePlacesAway = false
    renewed = []
    looks = 0
    lines = []
    metrics = new MetricsRegistry()
    const memory = new MemoryRunPlaces(() => 0)
    const unlessAway = async (act: () => Promise<void>) => {
      if (arePlacesAway) throw new AppError('unavailable', 'Redis does not answer')
      await act()
    }
    places = {
      take: (...args) => memory.take(...args),
      isWaiting: (...args) => memory.isWaiting(...args),
      keepFree: (...args) => memory.keepFree(...args),
      look(...args) {
        looks++
        return memory.look(...args)
      },
      count: (tenant) => memory.count(tenant),
      renew(tenant, runs) {
        renewed.push(runs.map(({ runId }) => runId))
        return unlessAway(() => memory.renew(tenant, runs))
      },
      release: (...args) => unlessAway(() => memory.release(...args)),
    }
    admission = open(5)
  })
  const open = (renewEveryMs: number) =>
    new RunAdmission({
      limits: { of: () => limits, peek: () => (limits instanceof Promise ? undefined : limits) },
      budgets: { refusal: async () => refusal },
      ...{ places, metrics },
      log: createLog({ level: 'debug', write: (line) => lines.push(line) }),
      renewEveryMs,
    })
  afterEach(() => admission.close())

  const renewals = (count: number) => until(() => renewed.length >= count, { what: `${count} renewals` })
  const errorOf = async (runId: string) => {
    try {
      await admission.admit(run(runId))
    } catch (cause) {
      if (cause instanceof AppError) return cause
      throw cause
    }
    return undefined
  }

  it('a run that moved to another process is not renewed here any more, and its place is not given back', async () => {
    for (const runId of ['moved', 'stays']) admission.hold(run(runId), NEVER)
    admission.handOver(TENANT, 'moved')
    await renewals(4)
    expect(renewed.slice(0, 4)).to.deep.equal([['moved'], ['stays'], ['stays'], ['stays']])
    expect(await places.count(TENANT)).to.equal(2)
  })

  it('the place of a run that has ended is given back, and not renewed any more', async () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    admission.hold(run('ends'), at(ended))
    admission.hold(run('stays'), NEVER)
    end()
    await until(async () => (await places.count(TENANT)) === 1, { what: 'the place to be given back' })
    const before = renewed.length
    await renewals(before + 3)
    expect(renewed.slice(before, before + 3).flat()).to.deep.equal(['stays', 'stays', 'stays'])
    expect(await places.count(TENANT)).to.equal(1)
  })

  it('nothing is renewed for a tenant whose last run has ended', async () => {
    admission.hold(run('only'), at(Promise.resolve()))
    admission.hold({ tenant: tenantId('other'), runId: 'stays' }, NEVER)
    await renewals(6)
    expect(renewed).to.deep.equal([['only'], ['stays'], ['stays'], ['stays'], ['stays'], ['stays']])
  })

  it('a run above the limit is refused, and told when to try again; a place that is released is free', async () => {
    expect([await errorOf('a'), await errorOf('b')]).to.deep.equal([undefined, undefined])
    expect(await errorOf('c')).to.include({ kind: 'rate_limit', retryAfterSecs: 5 })
    admission.release(run('a'))
    expect(await errorOf('c')).to.equal(undefined)
  })

  it('a tenant without limits of runs and budgets is not asked for, and one whose limits are not known yet waits for them', async () => {
    limits = { ...NO_LIMITS, requests_per_minute: 1 }
    expect(admission.admit(run('a'))).to.equal(undefined)
    expect(renewed).to.deep.equal([])
    limits = Promise.resolve({ ...NO_LIMITS, concurrent_runs: 1 })
    expect([await errorOf('a'), (await errorOf('b'))?.kind]).to.deep.equal([undefined, 'rate_limit'])
    admission.hold(run('b'), NEVER)
    expect(renewed).to.deep.equal([['b']])
  })

  it('runs at work count as soon as their tenant has a limit, and then their customer', async () => {
    admission.close()
    admission = open(60_000)
    limits = NO_LIMITS
    const first = { ...run('first'), customer: 'c' }
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    admission.hold(first, at(ended))
    limits = { ...NO_LIMITS, concurrent_runs: 2 }
    await until(async () => (await places.count(TENANT)) === 1, { what: 'the run to count' })
    limits = { ...limits, customers: { default: { concurrent_runs: 1 } } } as Limits
    const isRefused = async () => {
      const taken = await places.take({ ...run('second'), customer: 'c' }, { tenant: 2, customer: 1 })
      await places.release({ ...run('second'), customer: 'c' })
      return taken.place === 'customer_full'
    }
    await until(isRefused, { what: 'the run to count among those of its customer' })
    end()
    await until(async () => (await places.count(TENANT)) === 0, { what: 'the place to be given back' })
  })

  it('a run of a tenant whose limits cannot be read is refused, and one that goes on holds its place', async () => {
    limits = Promise.reject(new AppError('unavailable', 'the store does not answer'))
    expect(await errorOf('a')).to.include({ kind: 'unavailable' })
    admission.hold(run('moved here'), NEVER)
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
    admission.hold(run('a'), NEVER)
    admission.release(run('b'))
    await until(() => lines.length >= 3, { what: 'the failures to be logged' })
    expect(lines[0]).to.include('the places of runs cannot be reached').and.include('Redis does not answer')
    arePlacesAway = false
    await until(async () => (await places.count(TENANT)) === 1, { what: 'the place to be held again' })
  })

  const waitOf = async (start: Partial<Start> & { runId: string }) => {
    const wait = await admission.admit({ tenant: TENANT, waitSecs: 60, ...start })
    if (!wait) throw new Error(`${start.runId} does not wait`)
    return wait
  }
  const standingOf = (wait: StartWait) =>
    until(() => wait.standing, { what: 'the standing of a start' }).then(() => wait.standing)
  /** Starts two runs, which hold the places of the tenant, and returns what ends each. */
  const fill = async () => {
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    for (const [n, { promise }] of ends.entries()) {
      await admission.admit(run(`full_${n}`))
      admission.hold(run(`full_${n}`), at(promise))
    }
    return ends.map(({ resolve }) => resolve)
  }

  it('a start that waits knows its place, and has one at work when its turn comes: interactive ones first', async () => {
    const [end, endOther] = await fill()
    const batch = await waitOf({ runId: 'batch', priority: 'batch' })
    expect(await standingOf(batch)).to.deep.equal({ place: 1, expectedStart: undefined })
    const interactive = await waitOf({ runId: 'interactive', priority: 'interactive' })
    expect((await standingOf(interactive))?.place).to.equal(1)
    expect(batch.standing?.place).to.equal(2)
    expect(await Promise.all(['batch', 'full_0'].map((id) => admission.isWaiting(TENANT, id)))).to.deep.equal([
      true,
      false,
    ])
    expect(await metrics.gaugeValue('starts_waiting')).to.equal(2)
    expect(await metrics.gaugeValue('starts_waiting_oldest_seconds'))
      .to.be.a('number')
      .above(0)
    end?.()
    expect(await interactive.turn).to.equal('placed')
    await until(() => batch.standing?.expectedStart, { what: 'the expected start' })
    expect([interactive.standing, batch.standing?.place]).to.deep.equal([undefined, 1])
    const refused = await errorOf('c')
    expect(refused).to.include({ kind: 'rate_limit', retryAfterSecs: 1 })
    expect(refused?.message).to.include('2 runs at work').and.include('1 that wait')
    endOther?.()
    expect(await batch.turn).to.equal('placed')
    expect(await places.count(TENANT)).to.equal(2)
  })

  it('D55.2: a start that is refused while an item of a batch has the only place finds it free when it comes back', async () => {
    limits = { ...NO_LIMITS, concurrent_runs: 1 }
    const item = (runId: string) => ({ ...run(runId), customer: BATCH_ITEMS, priority: 'batch' as const, waitSecs: 60 })
    expect(await admission.admit(item('item'))).to.equal(undefined)
    const next = await waitOf(item('next'))
    expect(await errorOf('start')).to.include({ kind: 'rate_limit', retryAfterSecs: 5 })
    admission.release(item('item'))
    const before = looks
    await until(() => looks > before + 1, { what: 'the line to be looked at with a free place' })
    expect([await places.count(TENANT), await errorOf('again'), await places.count(TENANT)]).to.deep.equal([
      ...[0, undefined, 1],
    ])
    next.leave()
  })

  it('a start that has waited for as long as it may, or that leaves, takes no place, and the next one has it', async () => {
    const [end] = await fill()
    const late = admission.waitOn({ ...run('late'), waitSecs: 1 }, new Date(Date.now() - 1_000))
    expect(await late?.turn).to.equal('late')
    const [leaves, stays] = [await waitOf({ runId: 'leaves' }), await waitOf({ runId: 'stays' })]
    await standingOf(stays)
    leaves.leave()
    end?.()
    expect(await stays.turn).to.equal('placed')
    expect([await places.count(TENANT), late?.standing, leaves.standing]).to.deep.equal([2, undefined, undefined])
  })

  it('a place that comes for a start that has left meanwhile is given back', async () => {
    const [end] = await fill()
    const wait = await waitOf({ runId: 'leaves' })
    await standingOf(wait)
    const { take } = places
    const taken = Promise.withResolvers<void>()
    places.take = async (...args) => {
      const answer = await take(...args)
      wait.leave()
      taken.resolve()
      return answer
    }
    end?.()
    await taken.promise
    await until(async () => (await places.count(TENANT)) === 1, { what: 'the place to be given back' })
  })

  it('a start that does not wait passes those whose customer alone has no room, and no others', async () => {
    limits = { ...NO_LIMITS, concurrent_runs: 3, customers: { overrides: { c: { concurrent_runs: 1 } } } } as Limits
    const start = (runId: string, customer?: string) => ({ tenant: TENANT, runId, customer })
    const first = start('first', 'c')
    expect(await admission.admit(first)).to.equal(undefined)
    const wait = await waitOf(start('second', 'c'))
    await standingOf(wait)
    expect([await errorOf('a'), await errorOf('b')]).to.deep.equal([undefined, undefined])
    expect((await errorOf('d'))?.message).to.include('this tenant has 3 runs')
    await places.release(run('a'))
    const refused = await Promise.resolve(admission.admit(start('third', 'c'))).catch((cause: AppError) => cause)
    expect(refused).to.be.instanceOf(AppError).with.property('message').that.includes('this customer has 1 runs')
    await places.release(first)
    expect(await wait.turn).to.equal('placed')
  })

  it('a run that another process has accepted waits on, and one that has a place already keeps it', async () => {
    await fill()
    const since = new Date()
    expect(admission.waitOn(run('full_0'), since), 'it did not say that it waits').to.equal(undefined)
    expect(await admission.waitOn({ ...run('full_0'), waitSecs: 9 }, since)?.turn).to.equal('placed')
    const wait = admission.waitOn({ ...run('other'), waitSecs: 9 }, since)
    expect(wait && (await standingOf(wait))?.place).to.equal(1)
    wait?.leave()
  })

  it('D54.8: a start with a deadline comes behind the others, and waits past it, unless it says otherwise', () => {
    const unhurried = { prompt: 'a', background: true, deadline_hours: 2 }
    expect(startOf(run('r'), unhurried))
      .to.include({ priority: 'batch' })
      .and.property('waitSecs')
      .to.be.above(7_200)
    const own = { priority: 'normal', wait_secs: 5 } as const
    expect(startOf(run('r'), { ...unhurried, ...own })).to.include({ priority: 'normal', waitSecs: 5 })
    const others = [{ prompt: 'a', background: true }, { prompt: 'a' }].map((request) => startOf(run('r'), request))
    expect(others.map(({ priority, waitSecs }) => [priority, waitSecs])).to.deep.equal([
      ['normal', undefined],
      ['interactive', undefined],
    ])
  })

  it('above 1,000 starts of a tenant none waits', async () => {
    await fill()
    const waits = await Promise.all(Array.from({ length: 1_000 }, (_, i) => waitOf({ runId: `run_${i}` })))
    const refused = await waitOf({ runId: 'one more' }).catch((cause: AppError) => cause)
    expect(refused).to.include({ kind: 'rate_limit' })
    for (const wait of waits) wait.leave()
    await until(async () => (await places.take(run('x'), { tenant: 1, customer: null })).waiting === 0, {
      what: 'all to have left',
    })
  })
})

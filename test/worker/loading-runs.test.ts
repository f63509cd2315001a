import { expect } from 'chai'
import { LoadingRuns } from '../../services/worker/begin-run.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { tenantId } from '../support/tenant.ts'

const OTHER = tenantId('other')

describe('runs that wait for their models', () => {
  it('a run whose models are loaded is opened at once', () => {
    let opened = 0
    void new LoadingRuns().open(TENANT, 'run_1', { loading: undefined, open: () => opened++ })
    expect(opened).to.equal(1)
  })

  it('a waiting run is opened when the models are loaded, and cannot be cancelled here afterwards', async () => {
    const loading = Promise.withResolvers<void>()
    const runs = new LoadingRuns()
    let opened = 0
    const waiting = runs.open(TENANT, 'run_1', { loading: loading.promise, open: () => opened++ })
    expect(opened).to.equal(0)
    loading.resolve()
    await waiting
    expect(opened).to.equal(1)
    expect(runs.cancel(TENANT, 'run_1')).to.equal(false)
  })

  it('a waiting run that is cancelled is never opened; another tenant cannot cancel it', async () => {
    const loading = Promise.withResolvers<void>()
    const runs = new LoadingRuns()
    let opened = 0
    const waiting = runs.open(TENANT, 'run_1', { loading: loading.promise, open: () => opened++ })
    expect(runs.cancel(OTHER, 'run_1')).to.equal(false)
    expect(runs.cancel(TENANT, 'run_1')).to.equal(true)
    loading.resolve()
    const failure = await Promise.resolve(waiting).catch((cause: Error) => cause.message)
    expect(failure).to.equal('the run was cancelled before it began')
    expect(opened).to.equal(0)
  })

  it('a run whose models cannot be loaded is refused with the reason, and nothing of it is kept', async () => {
    const runs = new LoadingRuns()
    const loading = Promise.reject(new Error('the store is away'))
    const failure = await Promise.resolve(runs.open(TENANT, 'run_1', { loading, open: () => {} })).catch(
      (cause: Error) => cause.message,
    )
    expect(failure).to.equal('the store is away')
    expect(runs.cancel(TENANT, 'run_1')).to.equal(false)
  })
})

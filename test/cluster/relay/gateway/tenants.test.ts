import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { beginRun } from '../../../support/demo-executor.ts'
import { useRedis } from '../../../support/redis.ts'
import { createTestRelay } from '../../../support/relay.ts'
import { tenantId } from '../../../support/tenant.ts'
import { until } from '../../../support/until.ts'

const OTHER = tenantId('t_other')
const RANGE = { after: '', limit: 10 }

describe('the tenants of a cluster', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('are listed with what all workers and executors hold of them; a process that does not answer makes the list incomplete', async () => {
    const [, lost] = [await relay.worker(), await relay.worker()]
    const { executor } = await relay.executor()
    const gateway = await relay.gateway()
    await until(() => gateway.executors.hasAny(), { what: 'the gateway to see the executor' })
    for (let i = 0; i < 6; i++) await gateway.broker.createSession(DEFAULT_TENANT)
    const { runId } = await gateway.broker.startRun(DEFAULT_TENANT, { prompt: '/sleep 60000' })
    const hasBegun = async () => (await gateway.broker.getRun(DEFAULT_TENANT, runId)).status === 'running'
    await until(hasBegun, { what: 'the run to begin' })
    const flow = beginRun(executor, OTHER, `run_${'0'.repeat(31)}1`)
    expect(await gateway.listTenants(RANGE)).to.deep.equal({
      tenants: [
        { tenant: DEFAULT_TENANT, live_runs: 1, waiting_runs: 0, sessions: 6 },
        { tenant: OTHER, live_runs: 1, waiting_runs: 0, sessions: 0 },
      ],
      isIncomplete: false,
    })
    expect((await gateway.listTenants({ after: DEFAULT_TENANT, limit: 1 })).tenants).to.have.length(1)
    await gateway.broker.cancelRun(DEFAULT_TENANT, runId)
    flow.finish()
    await lost.link.close()
    const { tenants, isIncomplete } = await gateway.listTenants(RANGE)
    expect(isIncomplete).to.equal(true)
    expect(tenants[0]?.sessions ?? 0, 'those of the process that answers').to.be.below(7)
  })
})

// Tests worker.ts: a worker that loses Redis and is a member again.

import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { textOf } from '../../../support/broker-answers.ts'
import { useRedis } from '../../../support/redis.ts'
import { createTestRelay } from '../../../support/relay.ts'
import { until } from '../../../support/until.ts'

describe('a worker of the cluster over Redis', () => {
  const redis = useRedis()
  const relay = createTestRelay(() => redis.url)
  afterEach(() => relay.close())

  it('a worker that has lost its subscription does not renew its lease, is not ready, and works again once it listens', async () => {
    const worker = await relay.worker()
    const gateway = await relay.gateway()
    const client = redis.connect()
    try {
      await client.call('ACL', 'SETUSER', 'default', 'resetchannels', '&ae:gw:*', '&ae:started', '&ae:members') // It ends the subscriptions of the worker.
      await until(() => !worker.readiness().isMember, { what: 'the lease of the worker to end' })
      expect(gateway.readiness().isMember).to.equal(true)
    } finally {
      await client.call('ACL', 'SETUSER', 'default', 'allchannels')
    }
    await until(() => worker.readiness().isMember, { what: 'the worker to be a member again' })
    const run = async () => textOf((await gateway.broker.startRun(DEFAULT_TENANT, { prompt: '/say hi' })).frames)
    await until(async () => (await run().catch(() => '')).includes('event: done'), { what: 'a run to be done' })
  })
})

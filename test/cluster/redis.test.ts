import { expect } from 'chai'
import { brokerContract } from '../contract/broker.ts'
import { useRedis } from '../support/redis.ts'
import { createTestRelay } from '../support/relay.ts'
import { tenantId } from '../support/tenant.ts'

describe('broker over Redis', () => {
  const redis = useRedis({ keeps: true })

  brokerContract(async () => {
    const relay = createTestRelay(() => redis.url)
    for (let i = 0; i < 2; i++) await relay.worker()
    const gateways = [await relay.gateway(), await relay.gateway()] as const
    return { brokers: [gateways[0].broker, gateways[1].broker], close: relay.close }
  })

  it('all gateways send the runs of one customer to the same worker, and those of many customers to several', async () => {
    const relay = createTestRelay(() => redis.url)
    for (let i = 0; i < 3; i++) await relay.worker()
    const brokers = [(await relay.gateway()).broker, (await relay.gateway()).broker] as const
    const homesOf = async (customers: string[]) => {
      const opened = customers.map((customer_id, i) =>
        brokers[i % 2 ? 0 : 1].startRun(tenantId('t_a'), { prompt: '/say x', customer_id }),
      )
      return new Set((await Promise.all(opened)).map(({ runId }) => runId.slice(0, 12)))
    }
    expect(await homesOf(Array.from({ length: 10 }, () => 'one'))).to.have.property('size', 1)
    expect(await homesOf(Array.from({ length: 60 }, (_, i) => `c${i}`)))
      .to.have.property('size')
      .above(1)
    await relay.close()
  })
})

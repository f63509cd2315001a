import { brokerContract } from '../contract/broker.ts'
import { useRedis } from '../support/redis.ts'
import { createTestRelay } from '../support/relay.ts'

describe('the broker over Redis', () => {
  const redis = useRedis({ keeps: true })

  brokerContract(async () => {
    const relay = createTestRelay(() => redis.url)
    for (let i = 0; i < 2; i++) await relay.worker()
    const gateways = [await relay.gateway(), await relay.gateway()] as const
    return { brokers: [gateways[0].broker, gateways[1].broker], close: relay.close }
  })
})

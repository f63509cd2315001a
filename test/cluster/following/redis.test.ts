import { queuedRunsContract } from '../../contract/queued-runs.ts'
import { openQueuedRelay } from '../../support/queued-relay.ts'
import { useRedis } from '../../support/redis.ts'
import { createTestRelay } from '../../support/relay.ts'

describe('queued runs over Redis', () => {
  const redis = useRedis({ keeps: true })
  queuedRunsContract(() => openQueuedRelay(createTestRelay(() => redis.url)))
})

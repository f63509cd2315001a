import { queuedRunsContract } from '../../contract/queued-runs.ts'
import { openQueuedRelay } from '../../support/queued-relay.ts'
import { useRedis } from '../../support/redis.ts'

describe('queued runs over Redis', () => {
  const redis = useRedis({ keeps: true })
  queuedRunsContract(() => openQueuedRelay(() => redis.url))
})

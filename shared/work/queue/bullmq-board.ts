import type { Queue } from 'bullmq'
import type { RedisOptions } from '../../platform/config/redis-place.ts'
import { openQueue } from './bullmq.ts'
import { type BullData, closeInTime } from './bullmq-redis.ts'
import { JOB_KINDS } from './port.ts'

export type BoardQueues = { queues: readonly Queue<BullData>[]; close(): Promise<void> }

/** Opens the queues of all kinds for the dashboard. Connects without waiting for Redis. */
export async function openBoardQueues(url: string, options: RedisOptions): Promise<BoardQueues> {
  const queues = await Promise.all(JOB_KINDS.map((kind) => openQueue(kind, url, options)))
  return {
    queues,
    async close() {
      await Promise.all(queues.map((queue) => closeInTime(queue, queue.close())))
    },
  }
}

import type { ConnectionOptions, Queue } from 'bullmq'
import { withDeadline } from '../deadline.ts'
import { AppError } from '../errors.ts'
import { type BullData, closeInTime, PREFIX, retryStrategy } from './bullmq-redis.ts'
import type { JobKind, JobQueue } from './port.ts'

const ANSWER_MS = 1_500
const COMMAND_MS = 1_000
const RETRY_SECS = 2
const DAY_SECS = 86_400

/** A command is answered or fails within a second, so that a request gets its 503 in time. */
const connectionTo = (url: string): ConnectionOptions => ({
  url,
  commandTimeout: COMMAND_MS,
  connectTimeout: COMMAND_MS,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  retryStrategy,
})

/** Adds jobs to the queues of the cluster, one for each kind. It loads BullMQ and connects at the first call. */
export function createBullQueue(url: string): JobQueue {
  const queues = new Map<JobKind, Promise<Queue<BullData>>>()
  const queueOf = (kind: JobKind) => {
    const queue = queues.get(kind) ?? openQueue(kind, url)
    queues.set(kind, queue)
    return queue
  }
  return {
    async add({ kind, tenant, id }) {
      const queue = await queueOf(kind)
      await answered(queue.add(kind, { tenant }, { jobId: id }))
    },
    async remove({ kind, id }) {
      const queue = await queueOf(kind)
      await answered(queue.remove(id))
    },
    async close() {
      const opened = await Promise.all(queues.values())
      await Promise.all(opened.map((queue) => closeInTime(queue, queue.close())))
    },
  }
}

async function openQueue(kind: JobKind, url: string): Promise<Queue<BullData>> {
  const { Queue } = await import('bullmq')
  const queue = new Queue<BullData>(kind, {
    connection: connectionTo(url),
    prefix: PREFIX,
    skipVersionCheck: true,
    streams: { events: { maxLen: 1_000 } },
    defaultJobOptions: {
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: { age: DAY_SECS, count: 1_000 },
      stackTraceLimit: 0,
    },
  })
  queue.on('error', () => {}) // Each call reports its own failure, and ioredis reconnects.
  return queue
}

async function answered<T>(call: Promise<T>): Promise<T> {
  const late = () => new Error(`no answer within ${ANSWER_MS} ms`)
  try {
    return await withDeadline(call, ANSWER_MS, late)
  } catch (cause) {
    throw new AppError('unavailable', 'the queue cannot be reached at the moment; try again', {
      retryAfterSecs: RETRY_SECS,
      cause,
    })
  }
}

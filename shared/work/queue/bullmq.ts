import type { Queue } from 'bullmq'
import { LRUCache } from 'lru-cache'
import { withDeadline } from '../../kernel/async/deadline.ts'
import { AppError } from '../../kernel/errors.ts'
import { currentLink } from '../../kernel/trace.ts'
import type { RedisOptions } from '../../platform/config/redis-place.ts'
import type { ClientTimes } from '../../platform/redis/connect.ts'
import { type BullData, bullConnection, closeInTime, keyPrefixOf, repeatStrategy } from './bullmq-redis.ts'
import { countJobs, missingJobs, placeOf } from './bullmq-scripts.ts'
import { JOB_KINDS, type Job, type JobKind, type JobQueue, type QueueMonitor } from './port.ts'

const ANSWER_MS = 1_500
const CONNECT_MS = 1_000
/**
 * The time after which waiting commands on a hanging connection fail. `answered` has a shorter limit, and accepts an
 * answer that arrived while this process was paused.
 */
const HANGING_MS = 3_000
const RETRY_SECS = 2
const DAY_SECS = 86_400

/** No offline queue and few retries: a command is answered or fails in time for a request to get its 503. */
const TIMES: ClientTimes = {
  commandTimeout: HANGING_MS,
  connectTimeout: CONNECT_MS,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
}

/** How long a tenant's place is cached. If it has changed, the tenant's jobs have two turns for that time. */
const PLACE_MS = 1_000
const MAX_PLACES = 1_000

/** Adds jobs to the queues of the cluster, one for each kind. It loads BullMQ and connects at the first call. */
export function createBullQueue(url: string, options: RedisOptions = {}): JobQueue & QueueMonitor {
  const queues = new Map<JobKind, Promise<Queue<BullData>>>()
  const places = new LRUCache<string, number>({ max: MAX_PLACES, ttl: PLACE_MS })
  const queueOf = (kind: JobKind) => {
    const queue = queues.get(kind) ?? openQueue(kind, url, options)
    queues.set(kind, queue)
    return queue
  }
  return {
    async add(job, { isNew = false } = {}) {
      const queue = await queueOf(job.kind)
      const key = `${job.kind} ${job.tenant}`
      const add = async () => {
        const place = (isNew ? places.get(key) : undefined) ?? (await findPlace(queue, job))
        if (place === undefined) return
        places.set(key, place, { noUpdateTTL: true })
        await queue.add(job.kind, dataOf(job), { jobId: job.id, priority: place })
      }
      await answered(add())
    },
    async remove({ kind, id }) {
      const queue = await queueOf(kind)
      await answered(queue.remove(id))
    },
    async missing(kind, ids) {
      const queue = await queueOf(kind)
      return answered(missingJobs(queue, ids))
    },
    async counts(kind) {
      const queue = await queueOf(kind)
      return answered(countJobs(queue))
    },
    async close() {
      const opened = await Promise.all(queues.values())
      await Promise.all(opened.map((queue) => closeInTime(queue, queue.close())))
    },
  }
}

/**
 * The place of a job that is to be added, so that the tenants take turns; `undefined` for one that waits or is handled. A job that is listed as
 * failed is removed, because BullMQ would treat the new one as the same.
 */
async function findPlace(queue: Queue<BullData>, job: Job): Promise<number | undefined> {
  let place = await placeOf(queue, job)
  if (place === 'ended') {
    await queue.remove(job.id)
    place = await placeOf(queue, job)
  }
  return typeof place === 'number' ? place : undefined
}

function dataOf({ tenant, reader }: Job): BullData {
  const trace = currentLink()
  return { tenant, ...(reader && { reader }), ...(trace && { trace }) }
}

/** Loads BullMQ, and connects without waiting for Redis. */
export async function openQueue(kind: JobKind, url: string, options: RedisOptions): Promise<Queue<BullData>> {
  const { Queue } = await import('bullmq')
  const queue = new Queue<BullData>(kind, {
    connection: bullConnection(url, options, TIMES),
    prefix: keyPrefixOf(kind, options),
    skipVersionCheck: true,
    settings: { repeatStrategy },
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

/** Throws `unavailable` when Redis does not answer in time. */
export async function answered<T>(call: Promise<T>): Promise<T> {
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

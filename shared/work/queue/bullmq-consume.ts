import { type Job as BullJob, WaitingError, type WorkerOptions } from 'bullmq'
import { withDeadline } from '../../kernel/async/deadline.ts'
import { linked } from '../../kernel/trace.ts'
import type { RedisOptions } from '../../platform/config/redis-place.ts'
import { type BullData, bullConnection, closeInTime, keyPrefixOf, repeatStrategy, tickTimeOf } from './bullmq-redis.ts'
import { JobWorker, type JobWorkerOptions } from './bullmq-worker.ts'
import {
  type Consume,
  failedReason,
  HANDLER_FAILED,
  type Job,
  type JobConsumer,
  type JobEnd,
  type JobKind,
} from './port.ts'
import { tickId } from './schedule-times.ts'

export type BullTimes = {
  /** A consumer that does not renew its lock for this long is assumed to be dead. It renews it twice as often. */
  lockMs: number
  /** How often the consumers look for jobs of dead ones. Such a job is found at the second check after its lock has ended. */
  stalledMs: number
}

export type BullConsumeOptions = {
  url: string
  redis?: RedisOptions
  /** Called when a handler, a renewal or Redis has failed. */
  onProblem(message: string, cause: unknown): void
  times?: BullTimes
}

const TIMES: BullTimes = { lockMs: 10_000, stalledMs: 3_000 }
/** A job that stalled more often than this has ended its process each time. */
const MAX_STALLED = 1
/** BullMQ itself gives up a job later: when the processes that should have given it up died, too. */
const BULLMQ_MAX_STALLED = 5
const READY_MS = 1_500

/** Takes jobs from the queue of a kind in Redis. Rejects when Redis does not answer. */
export const createBullConsume =
  ({ url, redis = {}, onProblem, times = TIMES }: BullConsumeOptions): Consume =>
  async (
    kind,
    handler,
    { owner = () => '', concurrency, perTenant = concurrency, mayGrow = () => true, onGivenUp },
  ) => {
    const running = new Set<Promise<void>>()
    const handleOnce = async (job: Job, stalled: number, giveWay: AbortSignal) => {
      try {
        return await linked(job.trace, () => (stalled > MAX_STALLED ? onGivenUp : handler)(job, giveWay))
      } catch (cause) {
        onProblem('a job failed', cause)
        return { failed: HANDLER_FAILED } // BullMQ stores this text.
      }
    }
    const handle: JobWorkerOptions['handle'] = async (bullJob, giveWay, token) => {
      const handled = handleOnce(toJob(kind, bullJob), bullJob.stalledCounter, giveWay)
      const ended = handled.then((end) => endAs(end, bullJob, token))
      running.add(ended)
      await ended.finally(() => running.delete(ended))
    }
    const bull = workerOptions(kind, { url, redis, times })
    const limits = { max: concurrency, maxPerTenant: perTenant }
    const worker = new JobWorker(kind, { bull, limits, owner, mayGrow, handle })
    worker.on('error', createReporter(onProblem))
    await untilReady(worker)
    worker.run().catch((cause: unknown) => onProblem('the queue is no longer read', cause))
    return createConsumer(worker, running)
  }

const workerOptions = (
  kind: JobKind,
  { url, redis, times }: { url: string; redis: RedisOptions; times: BullTimes },
): WorkerOptions => ({
  // A consumer waits for Redis without a limit.
  connection: bullConnection(url, redis, { maxRetriesPerRequest: null }),
  prefix: keyPrefixOf(kind, redis),
  skipVersionCheck: true,
  settings: { repeatStrategy },
  lockDuration: times.lockMs,
  stalledInterval: times.stalledMs,
  maxStalledCount: BULLMQ_MAX_STALLED,
})

const toJob = (kind: JobKind, { id = '', data: { tenant, name, reader, trace } }: BullJob<BullData>): Job => ({
  kind,
  tenant,
  id: name === undefined ? id : tickId(tenant, { name, at: tickTimeOf(id) }),
  ...(reader && { reader }),
  ...(trace && { trace }),
})

/** Tells BullMQ by an error that a job has failed or waits again. */
async function endAs(end: JobEnd | void, job: BullJob<BullData>, token: string | undefined): Promise<void> {
  if (!end) return
  if ('failed' in end) throw new Error(failedReason(end.failed))
  await job.moveToWait(token)
  throw new WaitingError()
}

async function untilReady(worker: JobWorker): Promise<void> {
  try {
    await withDeadline(worker.waitUntilReady(), READY_MS, () => new Error('Redis does not answer'))
  } catch (cause) {
    await closeInTime(worker, worker.close(true), worker.stopRenewing)
    throw cause
  }
}

const createConsumer = (worker: JobWorker, running: ReadonlySet<Promise<void>>): JobConsumer => ({
  async drain() {
    const closed = worker.close()
    await Promise.allSettled(running)
    await closeInTime(worker, closed, worker.stopRenewing)
  },
  close: () => closeInTime(worker, worker.close(true), worker.stopRenewing),
  owners: () => worker.owners(),
  reclaim: (owner) => worker.reclaim(owner),
})

const REPEAT_MS = 60_000
/** How many different errors are remembered for a minute. */
const MAX_REPORTED = 20

/** Reports an error once a minute: without Redis, BullMQ repeats it at every attempt to reconnect. */
function createReporter(onProblem: BullConsumeOptions['onProblem']): (cause: Error) => void {
  const reported = new Map<string, number>()
  return (cause) => {
    const now = performance.now()
    for (const [message, at] of reported) if (now - at > REPEAT_MS) reported.delete(message)
    if (reported.has(cause.message) || reported.size >= MAX_REPORTED) return
    reported.set(cause.message, now)
    onProblem('the queue reports a problem', cause)
  }
}

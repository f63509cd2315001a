import type { RequestHandler } from 'express'
import type { LabelledValue, Metrics } from '../../shared/kernel/metrics.ts'
import { JOB_KINDS, type JobCounts, type JobKind, type QueueMonitor } from '../../shared/work/queue/port.ts'

/** Answers with the counts of the queue of this process, and with its failed jobs. The list is empty until `watchQueue` is called. */
export function answerQueues(watched: () => QueueMonitor | undefined): RequestHandler {
  return async (_req, res) => {
    const queue = watched()
    res.json({ queues: queue ? await Promise.all(JOB_KINDS.map((kind) => describe(queue, kind))) : [] })
  }
}

const describe = async (queue: QueueMonitor, kind: JobKind) => ({
  ...(await countJobs(queue, kind)),
  failures: queue.failures?.(kind) ?? [],
})

/** The jobs of a kind as the ops listener shows them. */
export async function countJobs(queue: QueueMonitor, kind: JobKind) {
  const { waiting, active, failed, oldestWaitingMs } = await queue.counts(kind)
  return { kind, waiting, active, failed, oldest_waiting_ms: oldestWaitingMs }
}

/** Registers the gauges of the queue. One scrape reads the queue once. */
export function watchQueue(metrics: Pick<Metrics, 'gauge'>, queue: QueueMonitor): void {
  let pending: Promise<readonly (readonly [JobKind, JobCounts])[]> | undefined
  const read = () => {
    pending ??= Promise.all(JOB_KINDS.map(async (kind) => [kind, await queue.counts(kind)] as const)).finally(() => {
      pending = undefined
    })
    return pending
  }
  metrics.gauge('queue_jobs', async () => (await read()).flatMap(([kind, counts]) => byState(kind, counts)))
  metrics.gauge('queue_oldest_waiting_seconds', async () =>
    (await read()).map(([kind, { oldestWaitingMs }]) => ({ labels: { kind }, value: oldestWaitingMs / 1_000 })),
  )
}

const byState = (kind: JobKind, { waiting, active, failed }: JobCounts): LabelledValue[] =>
  Object.entries({ waiting, active, failed }).map(([state, value]) => ({ labels: { kind, state }, value }))

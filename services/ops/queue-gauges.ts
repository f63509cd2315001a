import type { LabelledValue, Metrics } from '../../shared/kernel/metrics.ts'
import { JOB_KINDS, type JobCounts, type JobKind, type QueueMonitor } from '../../shared/work/queue/port.ts'

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

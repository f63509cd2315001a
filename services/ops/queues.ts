import type { RequestHandler } from 'express'
import { JOB_KINDS, type JobKind, type QueueMonitor } from '../../shared/work/queue/port.ts'

/** Answers with the counts of the queue of this process, and with its failed jobs. The list is empty before the queue is watched. */
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

import type { RequestHandler } from 'express'
import type { Log } from '../../shared/kernel/log.ts'
import type { redisOf } from '../../shared/platform/config/redis-place.ts'
import type { QueueMonitor } from '../../shared/work/queue/port.ts'

/** The pages below `/queues`. */
export type Queues = {
  handle: RequestHandler
  watch(queue: QueueMonitor): void
  close(): Promise<void>
}

type RedisArgs = ReturnType<typeof redisOf>

type Opened = { handle: RequestHandler; close(): Promise<void> }

/**
 * Shows the queues of the cluster in a dashboard, and those of a process without Redis as JSON. They are loaded at the first request,
 * because most processes are never asked.
 */
export function createQueues({ redis, log }: { redis: RedisArgs | undefined; log: Log }): Queues {
  let watched: QueueMonitor | undefined
  let opened: Promise<Opened> | undefined
  const open = () => (redis === undefined ? openPage(() => watched) : openDashboard(redis, log))
  return {
    async handle(req, res, next) {
      opened ??= open()
      const { handle } = await opened
      await handle(req, res, next)
    },
    watch(queue) {
      watched = queue
    },
    async close() {
      await (await opened)?.close()
    },
  }
}

async function openPage(watched: () => QueueMonitor | undefined): Promise<Opened> {
  const [{ createRoutes }, { answerQueues }] = await Promise.all([import('../http/routes.ts'), import('./queues.ts')])
  return { handle: createRoutes({ '/': { get: answerQueues(watched) } }), close: async () => {} }
}

async function openDashboard(redis: RedisArgs, log: Log): Promise<Opened> {
  const [{ openBoardQueues }, { createDashboard }] = await Promise.all([
    import('../../shared/work/queue/bullmq.ts'),
    import('./dashboard.ts'),
  ])
  const { queues, close } = await openBoardQueues(...redis)
  const onProblem = (cause: unknown) => log.warn('the dashboard cannot read the queue', { cause })
  return { handle: createDashboard('/queues', { queues, onProblem }), close }
}

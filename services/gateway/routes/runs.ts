import type { Request, RequestHandler } from 'express'
import {
  type Broker,
  RUN_STATUSES,
  type RunFilter,
  type RunStatus,
  type RunSummary,
} from '../../../shared/cluster/port.ts'
import { tenantOf } from '../middleware/auth.ts'
import { lastEventId, pageOf, pathId, queryValue, RUN, type ValueForm } from '../params.ts'
import { answerHead, answerNothingLeft, type Relay } from '../sse.ts'

type Deps = { broker: Broker; relay: Relay }
type RunRoutes = Record<'list' | 'read' | 'follow' | 'cancel', RequestHandler>

/** Lists, reads, follows and cancels the runs of the tenant (D4.5a–g). */
export function runRoutes({ broker, relay }: Deps): RunRoutes {
  return {
    async list(req, res) {
      res.json(await broker.listRuns(tenantOf(res), filterOf(req)))
    },
    async read(req, res) {
      res.json(await broker.getRun(tenantOf(res), pathId(req, 'run_id', RUN)))
    },
    async follow(req, res) {
      const runId = pathId(req, 'run_id', RUN)
      const after = lastEventId(req)
      const isHead = req.method === 'HEAD'
      const run = isHead || after > 0 ? await broker.getRun(tenantOf(res), runId) : undefined
      if (run && isOver(run, after)) return answerNothingLeft(runId, res)
      if (isHead) return answerHead(runId, res)
      relay({ runId, frames: await broker.followRun(tenantOf(res), runId, after), after }, res)
    },
    async cancel(req, res) {
      await broker.cancelRun(tenantOf(res), pathId(req, 'run_id', RUN))
      res.json({ status: 'cancelled' })
    },
  }
}

/** A number above the last event counts as the last (D4.5c). */
const isOver = ({ ended_at, event_count }: RunSummary, after: number): boolean =>
  ended_at !== null && after >= event_count

const STATUS: ValueForm = {
  pattern: new RegExp(`^(${RUN_STATUSES.join('|')})$`),
  wanted: `one of ${RUN_STATUSES.join(', ')}`,
}

function filterOf(req: Request): RunFilter {
  const status = queryValue(req, 'status', STATUS) as RunStatus | undefined
  return { ...pageOf(req), ...(status !== undefined && { status }) }
}

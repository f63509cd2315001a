import type { Request, RequestHandler } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import { runIdOf } from '../../../shared/kernel/ids.ts'
import type { DispatchFilter, DispatchLog } from '../../../shared/work/flows/dispatch-log.ts'
import { DISPATCH_STATUSES, type DispatchStatus } from '../../../shared/work/flows/port.ts'
import type { RouteTable } from '../../http/routes.ts'
import { tenantOf } from '../middleware/auth.ts'
import {
  FLOW,
  lastEventId,
  pageOf,
  pathId,
  queryNumber,
  queryText,
  queryValue,
  TRACE,
  type ValueForm,
} from '../params.ts'
import { answerHead, answerNothingLeft, type Relay } from '../sse.ts'

export type DispatchSurface = Pick<DispatchLog, 'list' | 'get' | 'replay'>

type Deps = { dispatches: DispatchSurface | undefined; relay: Relay }

/** The history of the runs of flows (api.md "Flow execution history", D6.8). */
export function dispatchRoutes({ dispatches, relay }: Deps): RouteTable {
  const stored = (create: (log: DispatchSurface) => RequestHandler): RequestHandler =>
    dispatches ? create(dispatches) : refuseHistory
  return {
    '/dispatches': {
      get: stored((log) => async (req, res) => {
        res.json(await log.list(tenantOf(res), filterOf(req)))
      }),
    },
    '/dispatches/:id': {
      get: stored((log) => async (req, res) => {
        res.json(await log.get(tenantOf(res), pathId(req, 'id', TRACE)))
      }),
    },
    '/dispatches/:id/events': { get: stored((log) => replay(log, relay)) },
  }
}

function replay(log: DispatchSurface, relay: Relay): RequestHandler {
  return async (req, res) => {
    const traceId = pathId(req, 'id', TRACE)
    const runId = runIdOf(traceId)
    const after = lastEventId(req)
    const speed = queryNumber(req, 'speed', SPEEDS)
    const frames = await log.replay(tenantOf(res), traceId, { after, ...(speed !== undefined && { speed }) })
    res.setHeader('X-Trace-ID', traceId)
    if (frames.isOver) return answerNothingLeft(runId, res)
    if (req.method === 'HEAD') return answerHead(runId, res)
    relay({ runId, frames, after }, res)
  }
}

const refuseHistory: RequestHandler = () => {
  throw new AppError(
    'unavailable',
    'this server keeps no history of flows: it needs a store, and DISPATCH_STORE must not be false',
  )
}

/** Multiples of the original pace. */
const SPEEDS = [0.1, 100] as const

const STATUS: ValueForm = {
  pattern: new RegExp(`^(${DISPATCH_STATUSES.join('|')})$`),
  wanted: `one of ${DISPATCH_STATUSES.join(', ')}`,
}
const FLOW_NAME: ValueForm = { pattern: FLOW.pattern, wanted: 'the name of a flow' }

function filterOf(req: Request): DispatchFilter {
  const flow = queryValue(req, 'flow', FLOW_NAME)
  const status = queryValue(req, 'status', STATUS) as DispatchStatus | undefined
  const since = queryText(req, 'since')
  const until = queryText(req, 'until')
  return {
    ...pageOf(req),
    ...(flow !== undefined && { flow }),
    ...(status !== undefined && { status }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
}

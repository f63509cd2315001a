import type { Request, RequestHandler } from 'express'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import type { DispatchFilter, DispatchLog, StatsFilter } from '../../../../shared/work/flows/dispatch-log.ts'
import { STATS_BUCKETS, type StatsBucket } from '../../../../shared/work/flows/history/stats.ts'
import {
  DISPATCH_KINDS,
  DISPATCH_STATUSES,
  type DispatchKind,
  type DispatchStatus,
} from '../../../../shared/work/flows/port.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { tenantOf } from '../../middleware/auth.ts'
import {
  CONFIG_NAME,
  FLOW,
  IDEMPOTENCY_KEY,
  lastEventId,
  oneOf,
  pageRequestOf,
  pathId,
  queryNumber,
  queryText,
  queryValue,
  TRACE,
  type ValueForm,
} from '../../params.ts'
import { answerHead, answerNothingLeft, type Relay } from '../../streams/sse.ts'
import { requires } from '../requires.ts'

export type DispatchSurface = Pick<DispatchLog, 'list' | 'stats' | 'get' | 'replay'>

type Deps = { dispatches: DispatchSurface | undefined; relay: Relay }

/** The history of the runs of flows (api.md "Flow execution history", D6.8). */
export function dispatchRoutes({ dispatches, relay }: Deps): RouteTable {
  const stored = requires('dispatches', dispatches)
  return {
    '/dispatches': {
      get: stored((log) => async (req, res) => {
        res.json(await log.list(tenantOf(res), filterOf(req)))
      }),
    },
    '/dispatches/stats': {
      get: stored((log) => async (req, res) => {
        res.json(await log.stats(tenantOf(res), statsFilterOf(req)))
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

/** Multiples of the original pace. */
const SPEEDS = [0.1, 100] as const

const STATUS = oneOf(DISPATCH_STATUSES)
const KIND = oneOf(DISPATCH_KINDS)
const BUCKET = oneOf(STATS_BUCKETS)
const FLOW_NAME: ValueForm = { pattern: FLOW.pattern, wanted: 'the name of a flow' }
const INSTANCE: ValueForm = { pattern: CONFIG_NAME.pattern, wanted: 'the name of an instance' }
const NAMED: ValueForm = { pattern: /^[^]{0,256}$/u, wanted: 'a text of at most 256 characters' }
const SEARCHED: ValueForm = { pattern: /^[^]{1,200}$/u, wanted: 'a text of 1 to 200 characters' }
/** A day; no execution takes longer. */
const MS = [0, 86_400_000] as const

const filterOf = (req: Request): DispatchFilter => ({
  ...pageRequestOf(req),
  flow: queryValue(req, 'flow', FLOW_NAME),
  status: queryValue(req, 'status', STATUS) as DispatchStatus | undefined,
  kind: queryValue(req, 'kind', KIND) as DispatchKind | undefined,
  since: queryText(req, 'since'),
  until: queryText(req, 'until'),
  model: queryValue(req, 'model', NAMED),
  instance: queryValue(req, 'instance', INSTANCE),
  subject: queryValue(req, 'subject', NAMED),
  key: queryValue(req, 'key', IDEMPOTENCY_KEY),
  minMs: queryNumber(req, 'min_ms', MS),
  q: queryValue(req, 'q', SEARCHED),
})

const statsFilterOf = (req: Request): StatsFilter => ({
  ...pageRequestOf(req),
  bucket: (queryValue(req, 'bucket', BUCKET) ?? 'day') as StatsBucket,
  flow: queryValue(req, 'flow', FLOW_NAME),
  from: queryText(req, 'from'),
  to: queryText(req, 'to'),
})

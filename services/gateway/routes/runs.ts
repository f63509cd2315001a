import type { Request, RequestHandler } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { RUN_STATUSES, type RunFilter, type RunSearch } from '../../../shared/cluster/commands/runs.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { RUN_ERROR_CODES } from '../../../shared/kernel/events.ts'
import { readTime } from '../../../shared/kernel/time.ts'
import type { RouteTable } from '../../http/routes.ts'
import { tenantOf } from '../middleware/auth.ts'
import {
  FLOW,
  lastEventId,
  oneOf,
  pageRequestOf,
  pathId,
  queryNumber,
  queryText,
  queryValue,
  RUN,
  type ValueForm,
} from '../params.ts'
import { resumeRun } from '../streams/resume-run.ts'
import type { Relay } from '../streams/sse.ts'
import { type SteerDeps, steerRun } from './steer-run.ts'

type Deps = SteerDeps & { broker: Broker; relay: Relay; admit(handler: RequestHandler): RequestHandler }

/** Lists, reads, follows, steers and cancels the runs of the tenant (D4.5a–g). */
export const runRoutes = ({ broker, relay, admit, ...deps }: Deps): RouteTable => ({
  '/runs': {
    async get(req, res) {
      res.json(await broker.listRuns(tenantOf(res), filterOf(req)))
    },
  },
  '/runs/:run_id': {
    async get(req, res) {
      res.json(await broker.getRun(tenantOf(res), pathId(req, 'run_id', RUN)))
    },
    async delete(req, res) {
      await broker.cancelRun(tenantOf(res), pathId(req, 'run_id', RUN))
      res.json({ status: 'cancelled' })
    },
  },
  '/runs/:run_id/events': {
    async get(req, res) {
      const runId = pathId(req, 'run_id', RUN)
      await resumeRun({ broker, relay }, res, { runId, after: lastEventId(req) })
    },
  },
  '/runs/:run_id/steer': { post: admit(steerRun({ broker, ...deps })) },
})

const textOf = (chars: number): ValueForm => ({
  pattern: new RegExp(`^[^]{0,${chars}}$`, 'u'),
  wanted: `a text of at most ${chars} characters`,
})

const STATUS = oneOf(RUN_STATUSES)

const KIND = oneOf(['run', 'message', 'flow', 'plan', 'step'])
const FLOW_NAME: ValueForm = { ...FLOW, wanted: 'the name of a flow: 1 to 64 of the characters a-z 0-9 _ -' }
const TEXT: ValueForm = { pattern: /^[^]{1,200}$/u, wanted: 'a text of 1 to 200 characters' }
const CODE = oneOf(['ok', 'plan_failed', ...RUN_ERROR_CODES])

function filterOf(req: Request): RunFilter & RunSearch {
  const search = {
    status: queryValue(req, 'status', STATUS),
    kind: queryValue(req, 'kind', KIND),
    code: queryValue(req, 'code', CODE),
    session_id: queryValue(req, 'session_id', textOf(128)),
    customer_id: queryValue(req, 'customer_id', textOf(128)),
    subject: queryValue(req, 'subject', textOf(256)),
    model: queryValue(req, 'model', textOf(256)),
    flow: queryValue(req, 'flow', FLOW_NAME),
    since: timeOf(req, 'since'),
    until: timeOf(req, 'until'),
    min_cost: queryNumber(req, 'min_cost', [0, 1e9]),
    min_ms: queryNumber(req, 'min_ms', [0, 1e9]),
    max_ms: queryNumber(req, 'max_ms', [0, 1e9]),
    q: queryValue(req, 'q', TEXT),
    metadata: metadataOf(req),
  }
  const given = Object.entries(search).filter(([, value]) => value !== undefined)
  return { ...pageRequestOf(req), ...Object.fromEntries(given) }
}

const METADATA = 'metadata.'
const METADATA_NAME = /^[A-Za-z0-9_-]{1,64}$/

/** The pairs of `metadata.NAME=VALUE`. */
function metadataOf(req: Request): RunSearch['metadata'] {
  const given = Object.keys(req.query).filter((name) => name.startsWith(METADATA))
  const pairs = given.map((param) => {
    const name = param.slice(METADATA.length)
    const wanted = 'the name of a pair behind metadata. has 1 to 64 letters, digits, _ and -'
    if (!METADATA_NAME.test(name)) throw invalidRequest(wanted, { param: `/${param}` })
    return [name, queryValue(req, param, textOf(512))]
  })
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined
}

/** Normalized to the format of `started_at`, so that the two can be compared as text. */
function timeOf(req: Request, name: string): string | undefined {
  const ms = readTime(name, queryText(req, name))
  return ms === undefined ? undefined : new Date(ms).toISOString()
}

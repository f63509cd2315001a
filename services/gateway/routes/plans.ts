import type { Request, RequestHandler, Response } from 'express'
import { planRunId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { ignoredFieldWarnings } from '../../../shared/platform/api/ignored-fields.ts'
import type { Estimate } from '../../../shared/tenancy/limits/estimate.ts'
import type { PlanCalls, ShownSubmission } from '../../../shared/work/plans/calls.ts'
import { PLAN_STATUSES, type PlanQuery, type PlanStatus } from '../../../shared/work/plans/port.ts'
import type { PlanSchedules } from '../../../shared/work/plans/schedules.ts'
import { checkPlan, type PlanCheck, type PlanRequest, refusedPlan } from '../../../shared/work/plans/submit.ts'
import type { RouteTable } from '../../http/routes.ts'
import { ignoredFields, type ReadBody } from '../bodies/body.ts'
import { subjectOf, tenantOf } from '../middleware/auth.ts'
import {
  idempotencyKeyOf,
  lastEventId,
  PLAN,
  pageRequestOf,
  pathId,
  queryFlag,
  queryValue,
  SCHEDULE,
  type ValueForm,
} from '../params.ts'
import { answerHead, answerNothingLeft, type Relay } from '../streams/sse.ts'
import { requires } from './requires.ts'

/** The services behind the plan endpoints. */
export type PlanSurface = {
  calls: Pick<PlanCalls, 'submit' | 'retry' | 'get' | 'list' | 'cancel' | 'frames'>
  schedules: ScheduleSurface
  /** Submits the plan of a schedule now (D12.5). */
  runSchedule(tenant: TenantId, name: string, call: ScheduleCall): Promise<{ planId: string; isReplayed: boolean }>
  /** Estimates a plan without submitting it (D57). */
  estimate(tenant: TenantId, request: PlanRequest): Promise<Estimate>
}

type ScheduleCall = { subject: string; idempotencyKey: string | undefined }

type Deps = { plans: PlanSurface | undefined; readBody: ReadBody; relay: Relay }

/** The plan queue (api.md "Plan queue", D7). When it is off every path answers 503. */
export function planRoutes({ plans, readBody, relay }: Deps): RouteTable {
  const queued = requires('plans', plans)
  return {
    '/plans': {
      get: queued(({ calls }) => async (req, res) => {
        res.json(await calls.list(tenantOf(res), queryOf(req)))
      }),
    },
    '/plans/submit': {
      post: queued(({ calls, estimate }) => async (req, res) => {
        const idempotencyKey = idempotencyKeyOf(req)
        const request = await readBody(req, res, 'PlanRequest')
        if (queryFlag(req, 'dry_run')) return void res.json(await estimate(tenantOf(res), request))
        const call = { subject: subjectOf(res), idempotencyKey }
        accept(res, await calls.submit(tenantOf(res), request, call))
      }),
    },
    '/plans/check': { post: queued(() => check(readBody)) },
    ...planScheduleRoutes({ schedules: plans?.schedules, readBody }),
    '/plans/schedules/:name/run': { post: queued(runNow) },
    '/plans/:id': {
      get: queued(({ calls }) => async (req, res) => {
        res.json(await calls.get(tenantOf(res), pathId(req, 'id', PLAN)))
      }),
    },
    '/plans/:id/cancel': {
      post: queued(({ calls }) => async (req, res) => {
        res.json(await calls.cancel(tenantOf(res), pathId(req, 'id', PLAN)))
      }),
    },
    '/plans/:id/retry': {
      post: queued(({ calls }) => async (req, res) => {
        const call = { subject: subjectOf(res), idempotencyKey: idempotencyKeyOf(req) }
        accept(res, await calls.retry(tenantOf(res), pathId(req, 'id', PLAN), call))
      }),
    },
    '/plans/:id/events': { get: queued(follow(relay)) },
  }
}

const runNow =
  ({ calls, runSchedule }: PlanSurface): RequestHandler =>
  async (req, res) => {
    const call = { subject: subjectOf(res), idempotencyKey: idempotencyKeyOf(req) }
    const { planId, isReplayed } = await runSchedule(tenantOf(res), pathId(req, 'name', SCHEDULE), call)
    accept(res, { plan: await calls.get(tenantOf(res), planId), isReplayed })
  }

const check =
  (readBody: ReadBody): RequestHandler =>
  async (req, res) => {
    const found: PlanCheck = await readBody(req, res, 'PlanRequest').then(checkPlan, refusedPlan)
    res.json({ ...found, ...ignoredFieldWarnings(ignoredFields(res)) })
  }

function accept(res: Response, { plan, isReplayed }: ShownSubmission): void {
  if (isReplayed) res.setHeader('Idempotency-Replayed', 'true')
  res.status(202).json({ ...plan, ...ignoredFieldWarnings(ignoredFields(res)) })
}

const follow =
  (relay: Relay) =>
  ({ calls }: PlanSurface): RequestHandler =>
  async (req, res) => {
    const planId = pathId(req, 'id', PLAN)
    const runId = planRunId(planId)
    const after = lastEventId(req)
    const frames = await calls.frames(tenantOf(res), planId, after)
    if (!frames) return answerNothingLeft(runId, res)
    if (req.method === 'HEAD') return answerHead(runId, res)
    relay({ runId, frames, after }, res)
  }

const STATUS: ValueForm = {
  pattern: new RegExp(`^(${PLAN_STATUSES.join('|')})$`),
  wanted: `one of ${PLAN_STATUSES.join(', ')}`,
}

function queryOf(req: Request): PlanQuery {
  const status = queryValue(req, 'status', STATUS) as PlanStatus | undefined
  return { ...pageRequestOf(req), ...(status !== undefined && { status }) }
}

type ScheduleSurface = Pick<PlanSchedules, 'put' | 'get' | 'list' | 'remove'>

type ScheduleDeps = { schedules: ScheduleSurface | undefined; readBody: ReadBody }

/** The schedules by which plans are submitted (D12). */
function planScheduleRoutes({ schedules, readBody }: ScheduleDeps): RouteTable {
  const queued = requires('plans', schedules)
  return {
    '/plans/schedules': {
      get: queued((timed) => async (req, res) => {
        res.json(await timed.list(tenantOf(res), pageRequestOf(req)))
      }),
    },
    '/plans/schedules/:name': {
      get: queued((timed) => async (req, res) => {
        res.json(await timed.get(tenantOf(res), pathId(req, 'name', SCHEDULE)))
      }),
      put: queued((timed) => async (req, res) => {
        const name = pathId(req, 'name', SCHEDULE)
        const request = await readBody(req, res, 'PlanScheduleRequest')
        res.json(await timed.put(tenantOf(res), name, request))
      }),
      delete: queued((timed) => async (req, res) => {
        await timed.remove(tenantOf(res), pathId(req, 'name', SCHEDULE))
        res.json({ status: 'deleted' })
      }),
    },
  }
}

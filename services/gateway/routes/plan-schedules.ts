import type { RouteTable } from '../../http/routes.ts'
import type { ReadBody } from '../body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pageOf, pathId, SCHEDULE } from '../params.ts'
import { type PlanSurface, queuedWith } from './plan-surface.ts'

type Deps = { plans: PlanSurface | undefined; readBody: ReadBody }

/** The schedules by which plans are submitted (D12). */
export function planScheduleRoutes({ plans, readBody }: Deps): RouteTable {
  const queued = queuedWith(plans)
  return {
    '/plans/schedules': {
      get: queued(({ schedules }) => async (req, res) => {
        res.json(await schedules.list(tenantOf(res), pageOf(req)))
      }),
    },
    '/plans/schedules/:name': {
      get: queued(({ schedules }) => async (req, res) => {
        res.json(await schedules.get(tenantOf(res), pathId(req, 'name', SCHEDULE)))
      }),
      put: queued(({ schedules }) => async (req, res) => {
        const name = pathId(req, 'name', SCHEDULE)
        const request = await readBody(req, res, 'PlanScheduleRequest')
        res.json(await schedules.put(tenantOf(res), name, request))
      }),
      delete: queued(({ schedules }) => async (req, res) => {
        await schedules.remove(tenantOf(res), pathId(req, 'name', SCHEDULE))
        res.json({ status: 'deleted' })
      }),
    },
  }
}

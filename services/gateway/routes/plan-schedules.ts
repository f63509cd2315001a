import type { PlanSchedules } from '../../../shared/work/plans/schedules.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { ReadBody } from '../bodies/body.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pageRequestOf, pathId, SCHEDULE } from '../params.ts'
import { requires } from './requires.ts'

export type ScheduleSurface = Pick<PlanSchedules, 'put' | 'get' | 'list' | 'remove'>

type Deps = { schedules: ScheduleSurface | undefined; readBody: ReadBody }

/** The schedules by which plans are submitted (D12). */
export function planScheduleRoutes({ schedules, readBody }: Deps): RouteTable {
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

import type { RequestHandler } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { PlanCalls } from '../../../shared/work/plans/calls.ts'
import type { PlanSchedules } from '../../../shared/work/plans/schedules.ts'

/** The services behind the plan endpoints. */
export type PlanSurface = {
  calls: Pick<PlanCalls, 'submit' | 'retry' | 'get' | 'list' | 'cancel' | 'frames'>
  schedules: Pick<PlanSchedules, 'put' | 'get' | 'list' | 'remove'>
}

/** Creates handlers that need the plan queue; where it is off they answer 503. */
export const queuedWith =
  (plans: PlanSurface | undefined) =>
  (create: (plans: PlanSurface) => RequestHandler): RequestHandler =>
    plans ? create(plans) : refuse

const refuse: RequestHandler = () => {
  throw new AppError('unavailable', 'this server has no plan queue: it needs a store, and PLAN_QUEUE must not be false')
}

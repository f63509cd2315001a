import type { RunRequest } from '../../shared/broker/port.ts'
import { Conversation } from '../../shared/engine/conversation.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { QueuePlan, ToolServices } from '../../shared/tools/port.ts'
import type { CustomerRuns } from './customers.ts'
import type { PrepareRun } from './prepare-run.ts'
import type { RunExecutor } from './run.ts'

/** Puts a tenant's approved plan into the plan queue, or says why not. */
export type PlanQueue = (tenant: TenantId) => QueuePlan

export type OneShotDeps = { startEngine: PrepareRun; customers: CustomerRuns; planQueue: PlanQueue }

/** Makes of `POST /agent/run` what its run executes: on the customer's line where there is one, else from nothing. */
export type StartOneShot = (tenant: TenantId, request: RunRequest) => RunExecutor

export function createOneShots({ startEngine, customers, planQueue }: OneShotDeps): StartOneShot {
  return (tenant, request) => {
    const facilities: ToolServices = request.auto_queue_plan ? { queuePlan: planQueue(tenant) } : {}
    const { customer_id: customerId } = request
    if (customerId) return customers(request, { tenant, customerId, facilities })
    return startEngine(request, () => ({ conversation: new Conversation(), facilities }))
  }
}

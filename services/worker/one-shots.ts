import type { RunRequest } from '../../shared/broker/port.ts'
import { Conversation } from '../../shared/engine/conversation.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { QueuePlan, RunFacilities } from '../../shared/tools/port.ts'
import type { CustomerRuns } from './customers.ts'
import type { StartEngine } from './prepare-run.ts'
import type { Execute } from './run.ts'

/** Puts a tenant's approved plan into the plan queue, or says why not. */
export type PlanQueue = (tenant: TenantId) => QueuePlan

export type OneShotDeps = { startEngine: StartEngine; customers: CustomerRuns; planQueue: PlanQueue }

/** Makes of `POST /agent/run` what its run executes: on the customer's line where there is one, else from nothing. */
export type StartOneShot = (tenant: TenantId, request: RunRequest) => Execute

export function createOneShots({ startEngine, customers, planQueue }: OneShotDeps): StartOneShot {
  return (tenant, request) => {
    const facilities: RunFacilities = request.auto_queue_plan ? { queuePlan: planQueue(tenant) } : {}
    const { customer_id: customerId } = request
    if (customerId) return customers(request, { tenant, customerId, facilities })
    return startEngine(request, () => ({ conversation: new Conversation(), facilities }))
  }
}

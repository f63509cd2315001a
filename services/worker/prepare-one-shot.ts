import { Conversation } from '../../shared/agent/engine/conversation.ts'
import { seedHistory } from '../../shared/agent/engine/messages/seed.ts'
import type { QueuePlan, ToolServices } from '../../shared/agent/tools/port.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { RunExecutor } from '../../shared/work/runs/run.ts'
import type { PrepareCustomerRun } from './prepare-customer-run.ts'
import type { PrepareRun } from './prepare-run.ts'

/** Returns the queue for the approved plans of a tenant. */
export type PlanQueue = (tenant: TenantId) => QueuePlan

export type OneShotOptions = { prepareRun: PrepareRun; prepareCustomerRun: PrepareCustomerRun; planQueue: PlanQueue }

/** Prepares `POST /agent/run`: a run on a customer's line when the request names a customer, else one without a history. */
export type PrepareOneShot = (tenant: TenantId, request: RunRequest) => RunExecutor

export function createPrepareOneShot({ prepareRun, prepareCustomerRun, planQueue }: OneShotOptions): PrepareOneShot {
  return (tenant, request) => {
    const services: ToolServices = request.auto_queue_plan ? { queuePlan: planQueue(tenant) } : {}
    const prepared = prepareRun(tenant, request)
    const { customer_id: customerId } = request
    if (customerId) return prepareCustomerRun(prepared, { tenant, customerId, services })
    const conversation = new Conversation({ messages: seedHistory(request.messages ?? []) })
    const start = { conversation, background: undefined, services, warnings: [] }
    return (run) => prepared.execute(run, start)
  }
}

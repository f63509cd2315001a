import { Conversation } from '../../shared/agent/engine/conversation.ts'
import { seedHistory } from '../../shared/agent/engine/messages/seed.ts'
import type { NumberedEvent } from '../../shared/agent/sessions/open-runs.ts'
import type { QueuePlan, ToolServices } from '../../shared/agent/tools/port.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { RunExecutor } from '../../shared/work/runs/run.ts'
import { backgroundOf, type PrepareCustomerRun } from './prepare-customer-run.ts'
import type { FirstCall, PrepareRun, RunStart } from './prepare-run.ts'

/** Returns the queue for the approved plans of a tenant. */
export type PlanQueue = (tenant: TenantId) => QueuePlan

export type OneShotOptions = { prepareRun: PrepareRun; prepareCustomerRun: PrepareCustomerRun; planQueue: PlanQueue }

/** The stored state that a one-shot run starts from. `events`: those of the run that another worker had sent before it died. */
export type OneShotStart = Pick<RunStart, 'conversation' | 'remembered' | 'progress'> & {
  events?: readonly NumberedEvent[] | undefined
}

/** Returns the executor of a prepared run. Without `start` the run begins with its request alone, and is not stored. */
export type ExecuteOneShot = (start?: OneShotStart) => RunExecutor

/** Prepares `POST /agent/run`: a run on a customer's line when the request names a customer, else one without a history. */
export type PrepareOneShot = (tenant: TenantId, request: RunRequest) => ExecuteOneShot

export function createPrepareOneShot({ prepareRun, prepareCustomerRun, planQueue }: OneShotOptions): PrepareOneShot {
  return (tenant, request) => {
    const services: ToolServices = request.auto_queue_plan ? { queuePlan: planQueue(tenant) } : {}
    const prepared = prepareRun(tenant, request)
    const { customer_id: customerId } = request
    return (from = { conversation: new Conversation({ messages: seedsOf(request) }) }) => {
      const { conversation, remembered, progress, events } = from
      const start = { conversation, ...(remembered && { remembered }), progress }
      if (customerId) return prepareCustomerRun(prepared, { tenant, customerId, services, start, events })
      return (run) => prepared.execute(run, { ...start, background: undefined, services, warnings: [] })
    }
  }
}

/** What `POST /agent/run` would call first. */
export type FirstCallOf = (tenant: TenantId, request: RunRequest) => Promise<FirstCall>

export const createFirstCallOf =
  (prepareRun: PrepareRun, lines: Parameters<typeof backgroundOf>[0]): FirstCallOf =>
  async (tenant, request) => {
    const { customer_id: customerId } = request
    const background = customerId ? await backgroundOf(lines, { tenant, customerId }) : undefined
    const conversation = new Conversation({ messages: seedsOf(request) })
    return prepareRun(tenant, request).firstCall({ conversation, background })
  }

/** The messages that a run begins with. */
export const seedsOf = ({ customer_id: customerId, messages = [] }: RunRequest) =>
  customerId ? [] : seedHistory(messages)

import type { HeldLine, LineCache } from '../../shared/agent/customers/cache.ts'
import type { CustomerIdentity, CustomerLine } from '../../shared/agent/customers/line.ts'
import { Conversation } from '../../shared/agent/engine/conversation.ts'
import { LastAnswer } from '../../shared/agent/engine/last-answer.ts'
import { seedHistory } from '../../shared/agent/engine/messages/seed.ts'
import { abortEvent } from '../../shared/agent/engine/run.ts'
import type { NumberedEvent } from '../../shared/agent/sessions/open-runs.ts'
import type { QueuePlan, ToolServices } from '../../shared/agent/tools/port.ts'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import type { Fence } from '../../shared/cluster/members/fence.ts'
import { type Batched, eachOf, splitEnd } from '../../shared/kernel/async/batch.ts'
import {
  type AgentEvent,
  type ErrorEvent,
  errorEvent,
  insteadOf,
  isTerminal,
  type JsonObject,
  type WarningEvent,
} from '../../shared/kernel/events.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Run, RunExecutor } from '../../shared/work/runs/run.ts'
import type { FirstCall, PreparedRun, PrepareRun, RunStart } from './prepare-run.ts'

/** Returns the queue for the approved plans of a tenant. */
export type PlanQueue = (tenant: TenantId) => QueuePlan

type OneShotOptions = { prepareRun: PrepareRun; prepareCustomerRun: PrepareCustomerRun; planQueue: PlanQueue }

/** The stored state that a one-shot run starts from. `events`: the run's events that another worker had sent before it died. */
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
      const start = { conversation, remembered, progress }
      if (customerId) return prepareCustomerRun(prepared, { tenant, customerId, services, start, events })
      return (run) => prepared.execute(run, { ...start, background: undefined, services, warnings: [] })
    }
  }
}

/** Returns the first model call that `POST /agent/run` would make. */
export type FirstCallOf = (tenant: TenantId, request: RunRequest) => Promise<FirstCall>

export const createFirstCallOf =
  (prepareRun: PrepareRun, lines: Pick<CustomerRunOptions, 'lines' | 'log'>): FirstCallOf =>
  async (tenant, request) => {
    const { customer_id: customerId } = request
    const background = customerId ? await backgroundOf(lines, { tenant, customerId }) : undefined
    const conversation = new Conversation({ messages: seedsOf(request) })
    return prepareRun(tenant, request).firstCall({ conversation, background })
  }

/** The messages that a run begins with. */
export const seedsOf = ({ customer_id: customerId, messages = [] }: RunRequest) =>
  customerId ? [] : seedHistory(messages)

type CustomerRunOptions = {
  /** `undefined`: this server has no store, so every customer's run is a stateless one. */
  lines: LineCache<CustomerLine, CustomerIdentity> | undefined
  fence: Fence
  log: Log
}

type CustomerOfRun = {
  tenant: TenantId
  customerId: string
  services: ToolServices
  start: Pick<RunStart, 'conversation' | 'remembered' | 'progress'>
  /** The run's events that another worker had sent before it died. */
  events?: readonly NumberedEvent[] | undefined
}

/** Puts a prepared run on the customer's line (api.md "Per-customer line"). */
type PrepareCustomerRun = (prepared: PreparedRun, customer: CustomerOfRun) => RunExecutor

/**
 * Runs of a customer start from the background of the customer's line, and are recorded on it before their `done`. When the
 * line cannot be read the run is stateless: it says so in a warning and is not recorded.
 */
export function createPrepareCustomerRun({ lines, fence, log }: CustomerRunOptions): PrepareCustomerRun {
  return (prepared, { tenant, customerId, services, start: from, events: earlier = [] }) =>
    async function* (run, signal) {
      const held = lines?.hold(keyOf(tenant, customerId), { tenant, customerId })
      try {
        const background = await readBackground(held, { about: { run_id: run.id }, log })
        const start: RunStart = { ...from, background, services, warnings: [] }
        if (!held || background === undefined) {
          yield* prepared.execute(run, { ...start, warnings: [fallbackWarning(customerId)] })
          return
        }
        const { line } = held
        const events = prepared.execute(run, { ...start, services: { ...services, memory: line } })
        const answer = new LastAnswer()
        for (const [, event] of earlier) answer.note(event)
        yield* recorded(events, { run, signal, prompt: prepared.prompt, answer, line, fence, log })
      } finally {
        held?.release()
      }
    }
}

/** The background with which a customer's run would begin; `undefined` when it cannot be read. */
async function backgroundOf(
  { lines, log }: Pick<CustomerRunOptions, 'lines' | 'log'>,
  { tenant, customerId }: CustomerIdentity,
): Promise<string | undefined> {
  const held = lines?.hold(keyOf(tenant, customerId), { tenant, customerId })
  try {
    return await readBackground(held, { about: { tenant }, log })
  } finally {
    held?.release()
  }
}

/** Unique, because neither id contains a NUL. */
const keyOf = (tenant: TenantId, customerId: string): string => `${tenant}\0${customerId}`

/** Returns `undefined` when there is no line or it cannot be read. */
async function readBackground(
  held: HeldLine<CustomerLine> | undefined,
  { about, log }: { about: JsonObject; log: Log },
): Promise<string | undefined> {
  try {
    return await held?.line.background()
  } catch (cause) {
    log.warn("a customer's line could not be read", { ...about, cause })
    return undefined
  }
}

type Recording = {
  run: Run
  signal: AbortSignal
  prompt: string
  answer: LastAnswer
  line: CustomerLine
  fence: Fence
  log: Log
}

/** Yields the run's events. Records a successful run before its terminal event is yielded. */
async function* recorded(
  events: AsyncIterable<Batched<AgentEvent>>,
  recording: Recording,
): AsyncGenerator<Batched<AgentEvent>, void> {
  const { answer } = recording
  for await (const batch of events) {
    for (const event of eachOf(batch)) answer.note(event)
    const { others, end } = splitEnd(batch, (last) => isTerminal(last) && last.type !== 'error')
    if (others) yield others
    const failure = end && (await record(answer.text, recording))
    if (end) yield failure ? insteadOf(end, failure) : end
  }
}

/** Writes the run's entry. When that fails, returns the error that ends the run instead. */
async function record(
  output: string,
  { run, signal, prompt, line, fence, log }: Recording,
): Promise<ErrorEvent | undefined> {
  await run.whenAccepted()
  const mayWriteUntil = () => (signal.aborted ? -Infinity : fence.heldUntil())
  while (true) {
    await fence.whenHeld(signal)
    if (signal.aborted) return abortEvent(signal)
    try {
      await line.record({ run_id: run.id, input: prompt, output, mayWriteUntil })
      return undefined
    } catch (cause) {
      if (performance.now() >= mayWriteUntil()) continue
      log.warn('a run could not be recorded', { run_id: run.id, cause })
      return errorEvent('storage_unavailable', 'the run could not be recorded: the store is unreachable')
    }
  }
}

const fallbackWarning = (customerId: string): WarningEvent => ({
  type: 'warning',
  code: 'customer_scope_fallback',
  message: "the customer's line is not available: this run is stateless and is not recorded",
  detail: { customer_id: customerId },
})

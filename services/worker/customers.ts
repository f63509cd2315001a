import type { Fence, RunRequest } from '../../shared/broker/port.ts'
import type { LineCache } from '../../shared/customers/cache.ts'
import type { CustomerIdentity, CustomerLine } from '../../shared/customers/line.ts'
import { Conversation } from '../../shared/engine/conversation.ts'
import { abortEvent } from '../../shared/engine/run.ts'
import { type AgentEvent, errorEvent, isTerminal, type WarningEvent } from '../../shared/events.ts'
import type { Log } from '../../shared/log.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { ToolServices } from '../../shared/tools/port.ts'
import type { PrepareRun, RunStart } from './prepare-run.ts'
import type { Run, RunExecutor } from './run.ts'

export type CustomerRunDeps = {
  startEngine: PrepareRun
  /** Missing: this server has no store, and every run falls back. */
  lines: LineCache<CustomerLine, CustomerIdentity> | undefined
  fence: Fence
  log: Log
}

export type OfCustomer = { tenant: TenantId; customerId: string; facilities: ToolServices }

/** Makes of a request what a run on the customer's line executes (api.md "Per-customer line"). */
export type CustomerRuns = (request: RunRequest, of: OfCustomer) => RunExecutor

/** Nobody takes a worker's place sooner than this after its fence closes: a write that was let pass has left by then. */
const FENCE_SLACK_MS = 1_000

/**
 * Runs of customers start from what their line knows, and are recorded on it before `done` (design §7.3). A line that cannot be
 * read makes the run a stateless one, which says so and is not recorded.
 */
export function createCustomerRuns({ startEngine, lines, fence, log }: CustomerRunDeps): CustomerRuns {
  return (request, { tenant, customerId, facilities }) => {
    let start: RunStart = { conversation: new Conversation(), facilities }
    const execute = startEngine(request, () => start)
    return async function* (run, signal) {
      const held = lines?.hold(keyOf(tenant, customerId), { tenant, customerId })
      try {
        const background = await held?.line.background().catch((cause: unknown) => {
          log.warn("a customer's line could not be read", { run_id: run.id, cause })
        })
        if (!held || background === undefined) {
          start = { ...start, warnings: [fallbackWarning(customerId)] }
          yield* execute(run, signal)
          return
        }
        start = { ...start, background, facilities: { ...facilities, recall: held.line } }
        yield* recorded(execute(run, signal), { run, signal, prompt: request.prompt, line: held.line, fence, log })
      } finally {
        held?.release()
      }
    }
  }
}

/** Neither id holds a NUL. */
const keyOf = (tenant: TenantId, customerId: string): string => `${tenant}\0${customerId}`

type Recording = { run: Run; signal: AbortSignal; prompt: string; line: CustomerLine; fence: Fence; log: Log }

/** Lets the events through, and the end of a good run only once it is on the line. */
async function* recorded(events: AsyncIterable<AgentEvent>, recording: Recording): AsyncGenerator<AgentEvent, void> {
  let answer: string[] = []
  for await (const event of events) {
    if (event.type === 'turn_start') answer = []
    if (event.type === 'text') answer.push(event.text)
    if (!isTerminal(event) || event.type === 'error') yield event
    else yield (await record(answer.join('\n'), recording)) ?? event
  }
}

/** Writes the run's entry. Returns the error that ends the run instead when it could not be written. */
async function record(
  output: string,
  { run, signal, prompt, line, fence, log }: Recording,
): Promise<AgentEvent | undefined> {
  const mayWriteMs = () => (fence.isHeld() && !signal.aborted ? FENCE_SLACK_MS : 0)
  while (true) {
    await fence.whenHeld(signal)
    if (signal.aborted) return abortEvent(signal)
    try {
      await line.record({ run_id: run.id, input: prompt, output, mayWriteMs })
      return undefined
    } catch (cause) {
      if (mayWriteMs() === 0) continue
      log.warn('a run could not be recorded', { run_id: run.id, cause })
      return errorEvent('storage_unavailable', 'the run could not be recorded: the store is away')
    }
  }
}

const fallbackWarning = (customerId: string): WarningEvent => ({
  type: 'warning',
  code: 'customer_scope_fallback',
  message: "the customer's line is not available: this run is stateless and is not recorded",
  detail: { customer_id: customerId },
})

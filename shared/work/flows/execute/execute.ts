import { MAX_OUTPUT_CHARS } from '../../../agent/engine/answers/output.ts'
import { EventQueue } from '../../../agent/engine/event-queue.ts'
import type { FlowEvent, FlowFailure, RunErrorCode, Verdict } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import type { DispatchEnd, DispatchOutput } from '../port.ts'
import { type Context, type FlowExecution, type FlowResources, runAgents } from './agents.ts'
import { FlowLog } from './flow-log.ts'
import { failureOf } from './outcome.ts'
import { Stop } from './stop.ts'

/** How an execution ended. The terminal event is made from it, after it is stored. */
export type FlowOutcome = Omit<DispatchEnd, 'status'> & DispatchOutput & { status: Verdict | 'error' }

const LIMIT_MS = 30 * 60_000
const MAX_QUEUED = 256

/**
 * Executes a flow (api.md "Named flows" 4 to 8): its sub-agents at the same time, then the main agent. Yields `started`, the turns
 * and the warnings, and returns the outcome; every failure is an outcome. Leaving the iteration ends all agents.
 */
export async function* executeFlow(
  call: FlowExecution,
  resources: FlowResources,
): AsyncGenerator<FlowEvent, FlowOutcome, undefined> {
  const events = new EventQueue<FlowEvent>(MAX_QUEUED)
  const log = new FlowLog({ send: (event) => events.send(event), now: resources.now })
  const stop = new Stop(resources.signal, resources.limitMs ?? LIMIT_MS)
  const ended = endOf(call, { resources, log, stop }).finally(() => events.close())
  try {
    yield* events
    const end = await ended
    const { timeline, totals, artifacts } = log
    return { ...end, ...totals, timeline, ...(artifacts.length > 0 && { artifacts }) }
  } finally {
    stop.dispose()
    events.close()
    await ended
  }
}

type End = Pick<FlowOutcome, 'status' | 'output' | 'raw_output' | 'problems' | 'served_instance' | 'error'>

/** Never rejects. If the execution was stopped from outside, that is its failure, even if the agents report another one. */
async function endOf(call: FlowExecution, context: Context): Promise<End> {
  const { stop } = context
  const result = await runAgents(call, context)
  if (stop.cause !== undefined && result.kind === 'failed')
    return failed(failureOf(stop.cause, stopMessage(stop.cause)))
  if (result.kind === 'failed') return failed(result.failure)
  const { text, instance } = result
  const answered = { raw_output: truncate(text, MAX_OUTPUT_CHARS), served_instance: instance, error: null }
  if (result.kind === 'invalid')
    return { ...answered, status: 'invalid_output', output: null, problems: result.problems }
  return { ...answered, status: 'ok', output: result.output }
}

const failed = (error: FlowFailure): End => ({
  status: 'error',
  output: null,
  raw_output: '',
  served_instance: null,
  error,
})

const STOP_MESSAGE: Partial<Record<RunErrorCode, string>> = {
  cancelled: 'the run was cancelled',
  timeout: 'the flow did not end within its time limit',
  worker_draining: 'the server is shutting down: send the request again',
}

const stopMessage = (code: RunErrorCode): string => STOP_MESSAGE[code] ?? 'the run was ended'

import type { OpenedRun } from '../../../shared/cluster/commands/broker.ts'
import { AppError, type ErrorKind } from '../../../shared/kernel/errors.ts'
import type { AgentEvent, DoneEvent, ErrorEvent, PlanQueuedEvent } from '../../../shared/kernel/events.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import { failureOf } from '../../../shared/work/flows/execute/outcome.ts'
import { FrameDecoder } from '../streams/run-events.ts'

/** The answer of a run to a client that asks for JSON (D25c). */
export type RunAnswer = ApiType<'RunAnswer'>

/** A call that the client is to execute; a run may end with such calls. */
type ClientCall = Extract<AgentEvent, { type: 'tool_use' }>

/** Reads a run to its end. Throws its failure with the status that D25c gives it. When `signal` aborts, it stops reading the run. */
export async function answerOf(
  { runId, frames }: OpenedRun,
  signal: AbortSignal,
): Promise<RunAnswer & { calls: readonly ClientCall[] }> {
  const texts: string[] = []
  const calls: ClientCall[] = []
  const decoder = new FrameDecoder<AgentEvent>(WANTED)
  for await (const each of untilAborted(frames, signal)) {
    for (const { event } of decoder.take(each)) {
      if (event.type === 'text') texts.push(event.text)
      else if (event.type === 'error') throw runFailure(runId, event)
      else if (event.type === 'done') return { ...doneAnswer(runId, texts, event), calls }
      else if (event.type === 'plan_queued') return { ...planAnswer(runId, texts, event), calls }
      else if (event.type === 'tool_use' && event.executor && !event.expires_at) calls.push(event)
    }
  }
  signal.throwIfAborted()
  throw new AppError('unavailable', 'the end of the run was not delivered; follow the run to read it')
}

const WANTED = new Set(['text', 'tool_use', 'done', 'plan_queued', 'error'])

/** Ends, and leaves the run, when `signal` is aborted. */
export async function* untilAborted(frames: OpenedRun['frames'], signal: AbortSignal) {
  const reading = frames[Symbol.asyncIterator]()
  const left = new Promise<IteratorResult<never, undefined>>((resolve) => {
    signal.addEventListener('abort', () => resolve({ done: true, value: undefined }), { once: true })
  })
  try {
    while (!signal.aborted) {
      const { done, value } = await Promise.race([reading.next(), left])
      if (done === true) return
      yield value
    }
  } finally {
    await reading.return?.()
  }
}

const outputOf = (texts: readonly string[]): string => texts.join('\n\n')

function doneAnswer(runId: string, texts: readonly string[], event: DoneEvent): RunAnswer {
  const { type: _, stop_reason, output = outputOf(texts), ...usage } = event
  return { run_id: runId, output, usage, stop_reason }
}

const planAnswer = (runId: string, texts: readonly string[], event: PlanQueuedEvent): RunAnswer => ({
  run_id: runId,
  output: outputOf(texts),
  usage: null,
  stop_reason: 'plan_queued',
  ...('plan_id' in event ? { plan_id: event.plan_id } : { note: event.note }),
})

/** Seconds after which a client may try again. */
const RETRY_SECS = 5

export function runFailure(
  runId: string,
  { code, error, suggestion, problems, retry_after_secs = RETRY_SECS }: ErrorEvent,
): AppError {
  const message = `${runId} has failed: ${error}; ${suggestion}`
  const { status, type } = failureOf(code, message)
  const mayRetry = status === 429 || status === 503
  return new AppError(type.slice(0, -'_error'.length) as ErrorKind, message, {
    status,
    code,
    ...(problems && { problems: problems.map(({ path, message: of }) => ({ param: path, message: of })) }),
    ...(mayRetry && { retryAfterSecs: retry_after_secs }),
  })
}

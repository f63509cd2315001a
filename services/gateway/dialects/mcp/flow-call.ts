import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server'
import type { AppError } from '../../../../shared/kernel/errors.ts'
import type { FlowAnswer, FlowEvent } from '../../../../shared/kernel/events.ts'
import type { StartedFlow } from '../../../../shared/work/flows/calls/calls.ts'
import { untilAborted } from '../../starting/run-answer.ts'
import { FrameDecoder } from '../../streams/run-events.ts'
import { linkTo } from './file-resources.ts'

type Call = ServerContext['mcpReq']

/** Follows the run of a flow to its end. Throws the run's failure, or the reason of the call's signal when the client cancels the call. */
export async function followFlow(started: StartedFlow, call: Call): Promise<CallToolResult> {
  const { signal, _meta: meta } = call
  if (meta?.progressToken !== undefined) await reportProgress(started, meta.progressToken, call)
  return resultOf(await started.answer(signal))
}

const WANTED = new Set<string>(['progress'] satisfies FlowEvent['type'][])

/** Sends one notification for each turn of an agent, until the run has ended. */
async function reportProgress(started: StartedFlow, progressToken: string | number, call: Call): Promise<void> {
  const decoder = new FrameDecoder<FlowEvent>(WANTED)
  let progress = 0
  for await (const frames of untilAborted(await started.frames(), call.signal)) {
    for (const { event } of decoder.take(frames)) {
      if (event.type !== 'progress') continue
      const message = `${event.agent}: turn ${event.turn_number}`
      await call.notify({ method: 'notifications/progress', params: { progressToken, progress: ++progress, message } })
    }
  }
}

function resultOf({ verdict, output, problems = [], flow_id, trace_id, artifacts = [] }: FlowAnswer): CallToolResult {
  const [meta, links] = [metaOf(trace_id), artifacts.map(linkTo)]
  if (verdict === 'ok')
    return { content: [textOf(JSON.stringify(output)), ...links], structuredContent: output, ...meta }
  const listed = problems.map(({ path, message }) => `\n${path}: ${message}`).join('')
  const text = textOf(`the output of ${flow_id} does not fit its schema${listed}`)
  return { content: [text, ...links], isError: true, ...meta }
}

/** A failure as a result, which the client's model reads. */
export function failureOf({ message, code, problems, param, traceId }: AppError, started?: string): CallToolResult {
  const places = problems ?? (param === undefined ? [] : [{ param, message: 'the place in the arguments' }])
  const listed = places.map((place) => `\n${place.param}: ${place.message}`).join('')
  const text = `${code === undefined ? '' : `${code}: `}${message}${listed}`
  const id = traceId ?? started
  return { content: [textOf(text)], isError: true, ...(id !== undefined && metaOf(id)) }
}

const textOf = (text: string) => ({ type: 'text' as const, text })

/** `GET /dispatches/{trace_id}` has the record of the run. */
const metaOf = (traceId: string) => ({ _meta: { 'agent-engine/trace_id': traceId } })

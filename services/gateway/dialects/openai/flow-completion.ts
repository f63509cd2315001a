import type { Request, Response } from 'express'
import { AppError } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { runIdOf } from '../../../../shared/kernel/ids.ts'
import { isJsonObject, parseJson } from '../../../../shared/kernel/json.ts'
import { answerUntilLeft } from '../../client-gone.ts'
import type { DialectDeps } from '../dialect.ts'
import { streamOf } from '../shared/response-stream.ts'
import { publishedFlow, startFlow } from '../shared/start-flow.ts'
import { type ChatOptions, chatWire, completion, usageOf } from './chat-projection.ts'
import { FlowProjection } from './flow-projection.ts'

type FlowRun = { flow: string; prompt: string; options: Omit<ChatOptions, 'id'>; isStream: boolean }

/** Answers with the output of a flow as JSON, in a completion or as a stream of one. */
export async function runFlow(
  deps: DialectDeps,
  { req, res }: { req: Request; res: Response },
  { flow, prompt, options, isStream }: FlowRun,
): Promise<void> {
  const started = await startFlow(
    deps,
    { req, res },
    { flow: await publishedFlow(deps, res, flow), input: inputOf(prompt) },
  )
  res.setHeader('X-Trace-ID', started.traceId)
  if (started.isReplayed) res.setHeader('Idempotency-Replayed', 'true')
  const facts = { ...options, id: `chatcmpl-${started.traceId.slice('trace_'.length)}` }
  const unfit = `the output of ${flow} does not fit its schema: GET /dispatches/${started.traceId} says why`
  if (isStream) {
    const source = { frames: await started.frames() }
    const runId = runIdOf(started.traceId)
    return deps.relay({ runId, ...streamOf(source, new FlowProjection(facts, unfit), chatWire()) }, res)
  }
  await answerUntilLeft(res, async (signal) => {
    const { output, verdict } = await started.answer(signal)
    if (verdict !== 'ok') throw new AppError('upstream', unfit)
    return completion(facts, { content: JSON.stringify(output) }, NO_USAGE)
  })
}

/** A completion shows no usage of the flow: its dispatch does. */
const NO_USAGE = usageOf({ total_input_tokens: 0, total_output_tokens: 0, total_tokens: 0 })

/** The input of a flow: the prompt as JSON, or its field `text` where it is none. */
function inputOf(prompt: string): JsonObject {
  const value = parseJson(prompt)
  return isJsonObject(value) ? value : { text: prompt }
}

import type { Request, Response } from 'express'
import { AppError } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { isJsonObject, parseJson } from '../../../../shared/kernel/json.ts'
import { answerUntilLeft } from '../../client-gone.ts'
import type { DialectDeps } from '../dialect.ts'
import { publishedFlow, startFlow } from '../shared/start-flow.ts'
import { completion, usageOf } from './chat-projection.ts'

type FlowRun = { flow: string; prompt: string; facts: { model: string; created: number } }

/** The answer of a flow as a completion: its output as JSON. */
export async function runFlow(
  deps: DialectDeps,
  { req, res }: { req: Request; res: Response },
  { flow, prompt, facts }: FlowRun,
): Promise<void> {
  const started = await startFlow(
    deps,
    { req, res },
    { flow: await publishedFlow(deps, res, flow), input: inputOf(prompt) },
  )
  res.setHeader('X-Trace-ID', started.traceId)
  if (started.isReplayed) res.setHeader('Idempotency-Replayed', 'true')
  await answerUntilLeft(res, async (signal) => {
    const { output, verdict } = await started.answer(signal)
    if (verdict !== 'ok') throw unfit(flow, started.traceId)
    const id = `chatcmpl-${started.traceId.slice('trace_'.length)}`
    return completion({ ...facts, id }, JSON.stringify(output), NO_USAGE)
  })
}

/** A dispatch shows what a flow has used. */
const NO_USAGE = usageOf({ total_input_tokens: 0, total_output_tokens: 0, total_tokens: 0 })

/** The input of a flow: the prompt as JSON, or its field `text` where it is none. */
function inputOf(prompt: string): JsonObject {
  const value = parseJson(prompt)
  return isJsonObject(value) ? value : { text: prompt }
}

const unfit = (flow: string, traceId: string) =>
  new AppError('upstream', `the output of ${flow} does not fit its schema: GET /dispatches/${traceId} says why`)

import type { Schema } from '../../../shared/client/api.ts'
import type { AgentEngine, FlowEvent } from '../../../shared/client/client.ts'
import { placeText } from '../../../shared/reading/place-text.ts'
import type { Cli } from '../cli.ts'
import { EXIT } from '../exit-codes.ts'
import { abortOnInterrupt } from '../io.ts'
import { readInput } from '../read-document.ts'
import { dollars, tokens } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'

export type RunFlowOptions = {
  instance: string
  input: string
  model?: string
  version?: number
  wait?: number
  priority?: Schema<'Priority'>
  deadline?: number
  key?: string
  json?: boolean
}

/** Writes the output to stdout. Problems of an output that does not fit the flow's schema go to stderr, with exit code 1. */
export async function runFlow(
  name: string,
  options: RunFlowOptions,
  { io, engine, output, exitWith }: Cli,
): Promise<void> {
  const { instance, model, version, wait: wait_secs, priority, deadline, key, json } = options
  const input = await readInput(options.input, io)
  const client = await engine()
  const turn = { ...(wait_secs !== undefined && { wait_secs }), ...(priority && { priority }) }
  const which = { ...(model !== undefined && { model }), ...(version !== undefined && { version }) }
  if (deadline !== undefined) {
    const body = { input, provider_instance: instance, ...which, ...turn, deadline_hours: deadline }
    const started = await startFlow(client, name, { body, key })
    return output.out(json ? `${plainJson(started)}\n` : `${started.run_id}\n`)
  }
  const { signal, release } = abortOnInterrupt(io)
  const onEvent = (event: FlowEvent) => {
    if (json) output.out(`${plainJson(event)}\n`)
    else if (event.event === 'progress') output.err(`  ${turnText(event.data)}\n`)
    else if (event.event === 'waiting') output.err(`  ${placeText(event.data)}\n`)
  }
  try {
    const body = { instance, input, ...which, ...turn }
    const result = await client.flows.run(name, body, { signal, idempotencyKey: key, onEvent })
    if (json) output.out(`${plainJson({ event: 'result', ...result })}\n`)
    else if (result.ok) output.out(`${plainJson(result.output, 2)}\n`)
    if (result.ok) return
    for (const problem of result.problems) output.err(`  ${plainJson(problem)}\n`)
    output.err(`the output does not fit the flow's schema: ae why ${result.trace_id}\n`)
    exitWith(EXIT.failed)
  } catch (cause) {
    if (!signal.aborted) throw cause
    exitWith(EXIT.cancelled)
  } finally {
    release()
  }
}

/** Starts a flow without waiting for its output. */
async function startFlow(
  client: AgentEngine,
  name: string,
  { body, key }: { body: Schema<'FlowRunRequest'>; key: string | undefined },
): Promise<Schema<'FlowStarted'>> {
  const start = { path: { name }, body, ...(key !== undefined && { idempotencyKey: key }) }
  return (await client.raw.post('/flows/{name}/run', start)) as Schema<'FlowStarted'>
}

const turnText = (data: Extract<FlowEvent, { event: 'progress' }>['data']): string =>
  plainLine(
    `${data.agent} turn ${data.turn_number}: ${data.model}, ${tokens(data.input_tokens)} in, ${tokens(data.output_tokens)} out, ${dollars(data.cost_usd)}`,
  )

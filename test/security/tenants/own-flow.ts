import { runIdOf } from '../../../shared/kernel/ids.ts'
import type { ModelServer } from '../../support/model-server/model-server.ts'
import { until } from '../../support/until.ts'
import { prepare, type Reply } from '../api.ts'
import { type Ids, random } from './ids.ts'

export type FlowOwning = { url: string; headers: Record<string, string>; model: ModelServer }

type Texts = { instance: string; prompt: string; answer: string; memory: string }

/** A flow that every tenant has, with a memory of its own for each. */
const BUILT_IN = 'summarize'

/** Gives a tenant a published flow with a memory, a run and a batch of it, and memory at a built-in flow. `keep` gets every answer. */
export async function ownFlow(
  { url, headers, model }: FlowOwning,
  { instance, prompt, answer, memory }: Texts,
  keep: (reply: Reply) => Reply,
): Promise<Pick<Ids, 'flow' | 'trace' | 'flow_run' | 'key' | 'memory' | 'batch'>> {
  const flow = `flow-${random()}`
  const key = `key-${random()}`
  const send = async (method: string, path: string, body?: object, more: Record<string, string> = {}) =>
    keep(await prepare(url, { method, path, headers: { ...headers, ...more }, ...(body && { body }) }))
  const definition = {
    input_schema: { type: 'object' },
    output_schema: { type: 'object' },
    system_prompt_template: prompt,
  }
  await send('PUT', `/flows/${flow}`, definition)
  await send('POST', `/flows/${flow}/publish`)
  await send('POST', `/flows/${flow}/memory`, { content: memory })
  await send('POST', `/flows/${BUILT_IN}/memory`, { content: memory })
  const added = await send('POST', `/flows/${BUILT_IN}/memory`, { content: { memory } })
  model.answer(JSON.stringify({ answer }))
  const request = { input: { prompt }, provider_instance: instance, model: 'm' }
  const ran = await send('POST', `/flows/${flow}/run`, request, { 'idempotency-key': key })
  const trace = ran.headers.get('x-trace-id') ?? ''
  await send('GET', `/dispatches/${trace}`)
  await send('GET', `/dispatches/${trace}/events`)
  await send('GET', `/runs/${runIdOf(trace)}`)
  const { id } = JSON.parse(added.text) as { id: string }
  model.answer(JSON.stringify({ answer }))
  const started = await send('POST', `/flows/${flow}/batch`, {
    ...request,
    input: undefined,
    items: [{ input: { prompt } }],
  })
  const { batch_id: batch } = JSON.parse(started.text) as { batch_id: string }
  const isDone = async () => (await send('GET', `/batches/${batch}`)).text.includes('"done"')
  await until(isDone, { what: 'the batch to end' })
  await send('GET', `/batches/${batch}/results`)
  return { batch, flow, trace, flow_run: runIdOf(trace), key, memory: id }
}

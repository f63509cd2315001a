import type { Schema } from '../../../../shared/client/api.ts'
import { createSession } from '../../../../shared/client/resources/sessions.ts'
import { RunStream } from '../../../../shared/client/run/run-stream.ts'
import { has, may } from '../../api/caller.ts'
import { get, send, transport } from '../../api/engine.ts'

type Run = Schema<'Run'>

/** A request that starts a run again. A person may change the prompt, or the input of a flow as JSON, and the model. */
export type Start = { path: string; body: Record<string, unknown>; model: string; isFlow: boolean }

/** Whether a run can be started again: its request is kept, and it is not part of a plan, which can only be retried as a whole. */
export function canStartAgain({ kind, request, trace_id: trace }: Run): boolean {
  if (!may('run')) return false
  return kind === 'flow' ? trace !== undefined && has('dispatches') : request !== undefined && kind !== 'step'
}

/** The request that starts the run again. A message is sent as a new version of the same message; throws when its conversation was deleted. */
export async function startOf(run: Run): Promise<Start> {
  const { kind, request, customer_id, metadata, attachments, session_id: session } = run
  if (kind === 'flow') return flowStart(run)
  const files = attachments?.map(({ file_id }) => ({ file_id }))
  const body = { ...request, metadata, attachments: files }
  const { model = '' } = request ?? {}
  if (session === undefined) return { path: '/agent/run', body: { ...body, customer_id }, model, isFlow: false }
  const history = await createSession(transport(), session).messages({ head: run.run_id }).all()
  const after = history.find(({ run_id: of }) => of === run.run_id)?.parent_id
  const path = `/sessions/${encodeURIComponent(session)}/messages`
  return { path, body: { ...body, ...(after !== undefined && { after }) }, model, isFlow: false }
}

async function flowStart({ flow = '', trace_id: trace = '' }: Run): Promise<Start> {
  const { input, provider_instance, model, flow: ran } = await get<Schema<'Dispatch'>>(`/dispatches/${trace}`)
  if (input === null) throw new Error('Its input is not kept, so it cannot be run again')
  const body = { input, provider_instance, model: model ?? undefined, version: ran.version }
  return { path: `/flows/${encodeURIComponent(flow)}/run`, body, model: model ?? '', isFlow: true }
}

/** The part of a start request that a person may change, as text. `withInput` puts a changed text back, and throws for invalid JSON. */
export const inputOf = ({ body, isFlow }: Start): string =>
  isFlow ? JSON.stringify(body['input'], null, 2) : String(body['prompt'])

export const withInput = (start: Start, text: string): Start => ({
  ...start,
  body: { ...start.body, ...(start.isFlow ? { input: JSON.parse(text) as unknown } : { prompt: text }) },
})

/** Starts a run that continues after this tab is closed, if the API supports this. Resolves with the id of the run. */
export async function begin(start: Start): Promise<string> {
  if (start.isFlow) return follow(start).started()
  return (await send<Schema<'RunStarted'>>('POST', start.path, { ...start.body, background: true })).run_id
}

/** A run that starts when its stream is read, and that ends some time after its last reader has left. */
export function follow({ path, body, isFlow }: Start, signal?: AbortSignal): RunStream {
  const ofFlow = ({ trace_id: trace }: Record<string, unknown>) => trace !== undefined
  return new RunStream({ transport: transport(), start: { path, body }, signal, ...(isFlow && { isEnd: ofFlow }) })
}

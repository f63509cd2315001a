import type { RunSummary } from '../../shared/cluster/commands/runs.ts'
import type { DispatchDetail } from '../../shared/work/flows/dispatch-log.ts'
import type { EventStream, Frame } from './event-stream.ts'
import type { FlowBench } from './flows.ts'
import type { ModelServer, Received } from './model-server/model-server.ts'
import { until } from './until.ts'

/** A request to a flow with a model whose price is known, so that its run has no warning. */
export const REQUEST = { input: { text: 'hello' }, provider_instance: 'main', model: 'test-model' }

const EVENTS = { accept: 'text/event-stream' }

/** Runs a flow in its streaming form. */
export const streamFlow = (
  { product }: FlowBench,
  name: string,
  body: object = {},
  headers: Record<string, string> = {},
): Promise<EventStream> => product.stream(`/flows/${name}/run`, { ...REQUEST, ...body }, { ...EVENTS, ...headers })

export const traceOf = ({ headers }: { headers: Headers }): string => headers.get('x-trace-id') ?? ''

export const eventsOf = (frames: readonly Frame[]): string[] => frames.map(({ event }) => event)

export async function recordOf({ call }: FlowBench, traceId: string): Promise<DispatchDetail> {
  const { status, body, text } = await call('GET', `/dispatches/${traceId}`)
  if (status !== 200) throw new Error(`no record of ${traceId}: ${status} ${text}`)
  return body as DispatchDetail
}

/** Waits until an execution has ended, and returns its record. */
export const endOf = (bench: FlowBench, traceId: string): Promise<DispatchDetail> =>
  until(
    async () => {
      const record = await recordOf(bench, traceId)
      return record.ended_at !== null && record
    },
    { what: `the execution ${traceId} to end`, withinMs: 10_000, everyMs: 20 },
  )

/** Waits for the execution that goes on at the moment, and returns the id of its run. */
export const runningRun = ({ call }: FlowBench): Promise<string> =>
  until(
    async () => {
      const { body } = await call('GET', '/runs?status=running')
      return (body as { runs: RunSummary[] }).runs[0]?.run_id
    },
    { what: 'a run to be listed as running', everyMs: 20 },
  )

/** Waits for the next request that the provider gets. */
export function nextCall({ requests }: ModelServer): Promise<Received> {
  const before = requests.length
  return until(() => requests[before], { what: 'the provider to be called' })
}

import type { FlowFailure } from '../../shared/kernel/events.ts'
import type { Dispatch } from '../../shared/work/flows/port.ts'
import type { JobEnd } from '../../shared/work/queue/port.ts'

/** The job of a dispatch that has ended. It is listed as failed when the flow has failed. */
export const jobEndOf = ({ trace_id, status, error }: Dispatch): JobEnd | undefined =>
  status === 'error' ? failedJob(trace_id, error) : undefined

/** The message of a failure is left out, because it may quote a tenant's text. */
export const failedJob = (traceId: string, failure: FlowFailure | null): JobEnd => ({
  failed: `${traceId} failed: ${failure?.code ?? failure?.type ?? 'error'}`,
})

import { AppError } from '../../shared/kernel/errors.ts'
import type { FlowFailure } from '../../shared/kernel/events.ts'
import type { Dispatch } from '../../shared/work/flows/port.ts'
import { failed, NOT_RECORDED } from '../../shared/work/flows/transitions.ts'
import type { JobEnd } from '../../shared/work/queue/port.ts'

/** The job of a dispatch that has ended. It is listed as failed when the flow has failed. */
export const jobEndOf = ({ trace_id, status, error }: Dispatch): JobEnd | undefined =>
  status === 'error' ? failedJob(trace_id, error) : undefined

/** The message of a failure is left out, because it may quote a tenant's text. */
export const failedJob = (traceId: string, failure: FlowFailure | null): JobEnd => ({
  failed: `${traceId} failed: ${failure?.code ?? failure?.type ?? 'error'}`,
})

/** The dispatch as its client sees it when its end is not recorded. */
export const unrecorded = (dispatch: Dispatch): Dispatch => ({
  ...dispatch,
  ...failed(dispatch, NOT_RECORDED),
  ended_at: new Date().toISOString(),
})

/** A run whose input no executor can read. */
export const noInput = () =>
  new AppError(
    'unavailable',
    'the input of this run was not stored: the process that accepted it has ended; send the request again',
  )

/** A run whose flow nobody has any more. */
export const gone = (name: string) =>
  new AppError('upstream', `the flow ${name} was deleted before this run began; store and publish it again`)

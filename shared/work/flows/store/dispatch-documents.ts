import type { JsonObject } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import type { CollectionSpec } from '../../../platform/store/port.ts'
import type { Dispatch, DispatchOutput } from '../port.ts'

/** The records without their payloads, so that a list reads no payload. */
export const DISPATCHES: CollectionSpec = {
  name: 'dispatches',
  key: ['trace_id'],
  order: { within: ['kind'], by: ['started_ms', 'trace_id'], direction: 'descending' },
  filters: ['flow_name', 'status'],
  expiresBy: 'expires_ms',
}

export const DISPATCH_INPUTS: CollectionSpec = { name: 'dispatch_inputs', key: ['trace_id'], expiresBy: 'expires_ms' }

/** One document for each attempt to end a dispatch; the dispatch names the one that counts. */
export const DISPATCH_OUTPUTS: CollectionSpec = {
  name: 'dispatch_outputs',
  key: ['output_id'],
  expiresBy: 'expires_ms',
}

/** The outputs of dispatches that keep no payloads, for the clients that wait for them. */
export const DISPATCH_ANSWERS: CollectionSpec = {
  name: 'dispatch_answers',
  key: ['output_id'],
  expiresBy: 'expires_ms',
}

/** A refused request may name an instance and a model at any length. */
const MAX_NAME_CHARS = 512
const MAX_MESSAGE_CHARS = 4_000

/** The fields by which the store finds and orders dispatches. */
type Indexed = { flow_name: string; started_ms: number; expires_ms: number }

export function toDoc(dispatch: Dispatch): JsonObject {
  const indexed: Indexed = {
    flow_name: dispatch.flow.name,
    started_ms: Date.parse(dispatch.started_at),
    expires_ms: Date.parse(dispatch.expires_at),
  }
  const { error } = dispatch
  return {
    ...dispatch,
    provider_instance: truncate(dispatch.provider_instance, MAX_NAME_CHARS),
    model: truncate(dispatch.model, MAX_NAME_CHARS),
    error: error && { ...error, message: truncate(error.message, MAX_MESSAGE_CHARS) },
    ...indexed,
  }
}

/** The position of a record in its list, for cursors. */
export const dispatchPosition = ({ started_at, trace_id }: Dispatch): [startedMs: number, traceId: string] => [
  Date.parse(started_at),
  trace_id,
]

export function toDispatch(doc: JsonObject): Dispatch {
  const { flow_name: _name, started_ms: _started, expires_ms: _expires, ...dispatch } = doc as Dispatch & Indexed
  return dispatch
}

export function toOutput(doc: JsonObject): DispatchOutput {
  const { raw_output, output, timeline, problems } = doc as DispatchOutput
  return { raw_output, output, timeline, ...(problems && { problems }) }
}

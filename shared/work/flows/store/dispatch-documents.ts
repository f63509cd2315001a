import type { JsonObject } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import type { CollectionSpec } from '../../../platform/store/port.ts'
import type { Dispatch, DispatchOutput } from '../port.ts'

/** The records, including short inputs and outputs. A list reads only these. */
export const DISPATCHES: CollectionSpec = {
  name: 'dispatches',
  key: ['trace_id'],
  order: { within: ['kind'], by: ['started_ms', 'trace_id'], direction: 'descending' },
  filters: ['flow_name', 'status'],
  expiresBy: 'expires_ms',
}

/** The long inputs, and those that are not kept as long as their records. */
export const DISPATCH_INPUTS: CollectionSpec = { name: 'dispatch_inputs', key: ['trace_id'], expiresBy: 'expires_ms' }

/** The same for outputs. One document for each attempt to end a dispatch; the dispatch names the valid one. */
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

/** The `output_id` of an output that is a part of its record. */
export const IN_RECORD = 'in_record'

/** The longest JSON of an input or output that is a part of its record. */
const SHORT_CHARS = 2 * 1024
export const isShort = (payload: JsonObject | DispatchOutput): boolean => JSON.stringify(payload).length <= SHORT_CHARS

/** The payloads that are a part of the record. */
export type OwnPayloads = { own_input?: JsonObject; own_output?: DispatchOutput }

/** The fields by which the store finds and orders dispatches. */
type Indexed = { flow_name: string; started_ms: number; expires_ms: number }

export function toDoc(dispatch: Dispatch, { own_input, own_output }: OwnPayloads = {}): JsonObject {
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
    ...(own_input && { own_input }),
    ...(own_output && { own_output }),
  }
}

/** The position of a record in its list, for cursors. */
export const dispatchPosition = ({ started_at, trace_id }: Dispatch): [startedMs: number, traceId: string] => [
  Date.parse(started_at),
  trace_id,
]

export function toDispatch(doc: JsonObject): Dispatch {
  const {
    flow_name: _name,
    started_ms: _started,
    expires_ms: _expires,
    ...rest
  } = doc as Dispatch & Indexed & OwnPayloads
  const { own_input: _input, own_output: _output, ...dispatch } = rest
  return dispatch
}

export const ownPayloads = (doc: JsonObject): OwnPayloads => doc

export function toOutput(doc: JsonObject): DispatchOutput {
  const { raw_output, output, timeline, problems, artifacts } = doc as DispatchOutput
  return { raw_output, output, timeline, ...(problems && { problems }), ...(artifacts && { artifacts }) }
}

import type { AppError } from '../../../kernel/errors.ts'
import type { Audit } from '../../../tenancy/tenant-config/config.ts'
import { refusalOf } from '../execute/outcome.ts'
import type { Dispatch, DispatchKind, Flow, FlowRunRequest } from '../port.ts'

/** A version of a flow to execute, for a request. */
export type Execution = {
  kind: DispatchKind
  flow: Pick<Flow, 'name' | 'uid' | 'version' | 'definition'>
  request: FlowRunRequest
  subject: string
  idempotencyKey: string | undefined
}

const DAY_MS = 86_400_000

/** The record of an execution that has just been asked for. Its instance and model are still those of the request. */
export function newDispatch(
  { kind, flow, request, subject, idempotencyKey }: Execution,
  { traceId, audit, at }: { traceId: string; audit: Audit; at: Date },
): Dispatch {
  return {
    trace_id: traceId,
    kind,
    subject,
    flow: { name: flow.name, uid: flow.uid, version: flow.version },
    provider_instance: request.provider_instance,
    model: request.model ?? flow.definition.model ?? '',
    fallback: null,
    served_instance: null,
    idempotency_key: idempotencyKey ?? null,
    status: 'queued',
    error: null,
    started_at: at.toISOString(),
    ended_at: null,
    duration_ms: null,
    turns: 0,
    input_tokens: 0,
    output_tokens: 0,
    cost_usd: 0,
    executor: null,
    keeps_payloads: audit.store_payloads,
    expires_at: new Date(at.getTime() + DAY_MS * audit.retention_days).toISOString(),
  }
}

/** The record of an execution that was refused before a provider was called (D6.5). */
export const rejected = (dispatch: Dispatch, refusal: AppError): Dispatch => ({
  ...dispatch,
  status: 'rejected',
  error: refusalOf(refusal),
  ended_at: dispatch.started_at,
  duration_ms: 0,
})

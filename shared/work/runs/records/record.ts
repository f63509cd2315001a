import type { RunRequest, RunSummary } from '../../../cluster/commands/runs.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { hoursAfter } from '../../../kernel/time.ts'
import { titleOf } from '../../../reading/title.ts'
import type { RunFigures } from '../run-figures.ts'
import type { KeptRequest, RunAbout } from '../run-identity.ts'

/** The facts of a run that are known when it begins to exist. */
export type RunFacts = {
  tenant: TenantId
  run_id: string
  kind: NonNullable<RunSummary['kind']>
  started_at: string
  session_id?: string | undefined
  customer_id?: string | undefined
  metadata?: RunSummary['metadata']
  attachments?: RunSummary['attachments']
  plan_id?: string | undefined
  step_id?: string | undefined
  flow?: string | undefined
  trace_id?: string | undefined
  request_id?: string | undefined
  subject?: string | undefined
  title?: string | undefined
  deadline_at?: string | undefined
}

export type EndedStatus = Extract<RunSummary['status'], 'done' | 'failed' | 'cancelled'>

/** The record of a run that has ended (D20). */
export type RunRecord = RunSummary & { status: EndedStatus; ended_at: string }

/** The facts about the request that the record of a run contains. */
export const aboutRequest = ({ customer_id, metadata, files: attachments, prompt }: Begun): RunAbout => ({
  customer_id,
  metadata,
  attachments,
  title: titleOf(prompt, TITLE_CHARS),
})

type Begun = Pick<RunRequest, 'customer_id' | 'metadata' | 'files' | 'prompt'>

/**
 * The same facts for the process that records the run, with the request itself, so that the run can be started again. A
 * request with its own history is not kept, so such a run cannot be started again.
 */
export function aboutStart(request: RunRequest, acceptedAt: Date): RunAbout {
  const about = aboutRequest(request)
  about.deadline_at = deadlineOf(request, acceptedAt)
  about.request = request.messages === undefined ? keptRequest(request) : undefined
  return about
}

const deadlineOf = ({ deadline_hours: hours }: RunRequest, acceptedAt: Date): string | undefined =>
  hours === undefined ? undefined : hoursAfter(acceptedAt, hours)

function keptRequest(request: RunRequest): KeptRequest {
  const kept: Record<string, unknown> = {}
  for (const field of KEPT) if (request[field] !== undefined) kept[field] = request[field]
  return kept as KeptRequest
}

const KEPT = [
  ...(['prompt', 'model', 'system_prompt', 'max_turns', 'stop_sequences', 'auto_queue_plan', 'plan_mode'] as const),
  ...(['response_schema', 'allowed_tools', 'tool_choice', 'effort', 'temperature', 'max_output_tokens'] as const),
] satisfies readonly (keyof KeptRequest)[]

/** The length of a run's title in code points. */
export const TITLE_CHARS = 120

export type RunEnd = { status: EndedStatus; endedAt: string; eventCount: number }

/**
 * The fields of a run with its usage so far; with `end` its whole record. All fields are in one object literal, in the order in which the API shows
 * them: copying them from one object into another takes ten times as long.
 */
export const describeRun = (facts: RunFacts, figures: RunFigures, end?: RunEnd): Partial<RunSummary> =>
  asJson<Partial<RunSummary>>({
    run_id: facts.run_id,
    status: end?.status,
    started_at: facts.started_at,
    ended_at: end?.endedAt,
    deadline_at: facts.deadline_at,
    event_count: end?.eventCount,
    code: figures.code,
    title: facts.title,
    kind: facts.kind,
    session_id: facts.session_id,
    customer_id: knownCustomer(facts.customer_id),
    metadata: facts.metadata,
    attachments: facts.attachments,
    plan_id: facts.plan_id,
    step_id: facts.step_id,
    flow: facts.flow,
    trace_id: facts.trace_id,
    request_id: facts.request_id,
    subject: facts.subject,
    model: figures.model,
    queued_ms: rounded(figures.firstEventMs),
    first_token_ms: rounded(figures.firstTokenMs),
    turns: figures.turns,
    tool_calls: figures.toolCalls,
    permissions: figures.permissions,
    ...figures.spent,
    artifacts: figures.artifacts,
  })

export const recordOf = (facts: RunFacts, figures: RunFigures, end: RunEnd): RunRecord =>
  describeRun(facts, figures, end) as RunRecord

/** The record of a run whose process died: its progress is unknown. */
export const lostRecord = ({ tenant: _tenant, customer_id, ...facts }: RunFacts, endedAt: string): RunRecord =>
  asJson<RunRecord>({
    ...facts,
    customer_id: knownCustomer(customer_id),
    status: 'failed',
    code: 'worker_lost',
    ended_at: endedAt,
    event_count: 0,
  })

/** An empty id means no customer. */
const knownCustomer = (id: string | undefined): string | undefined => id || undefined

const rounded = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms))

type WithUndefined<T> = { [Field in keyof T]: T[Field] | undefined }

/** A record is always rendered as JSON, which leaves out `undefined` fields. Leaving them out here would take longer than all the rest. */
const asJson = <T extends object>(fields: WithUndefined<T>): T => fields as T

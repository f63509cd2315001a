import type { AttachedFile } from '../../kernel/attachment.ts'
import { type RunErrorCode, type RunEvent, type RunTotals } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { Attributes } from '../../kernel/trace.ts'
import type { ApiType } from '../../platform/api/api-type.ts'
import type { StartWait } from '../../tenancy/limits/start-lines.ts'

/** Reason for ending a run from outside; also the code of its terminal event (D4.8). */
export type CancelCode = Extract<
  RunErrorCode,
  'cancelled' | 'session_deleted' | 'worker_draining' | 'worker_lost' | 'no_room' | 'timeout'
>

export type RunIdentity = {
  id: string
  tenant: TenantId
  sessionId: string | undefined
  /** The name of the folder in which the run's tools work; the run's id by default. */
  workspace?: string
  /** When the run was accepted, if another process accepted it; now by default. */
  startedAt?: Date
  /** The run continues without readers until its own end, as a plan does; others are aborted after RUN_RESUME_SECS (D4.5b). */
  needsNoReader?: boolean
  /** The run does not begin before `accept` (D36.1). */
  isHeld?: boolean
  /** The kind of the run, if it does not begin with a prompt. */
  kind?: 'flow' | 'plan'
  about?: RunAbout
  /** The events of the run that another process has sent. */
  earlier?: EarlierEvents
  /** The run does not begin before its tenant has a place for it. */
  wait?: StartWait | undefined
}

/**
 * All known events from number `from` on. No event above `reserved` was sent. A reader that lacks earlier events gets `notice` before the
 * first of these.
 */
export type EarlierEvents = {
  events: readonly (readonly [seq: number, event: RunEvent])[]
  from: number
  reserved: number
  notice?: RunEvent
  /** The usage of the other process. */
  used?: RunTotals
  /** Withdraws its open permission requests, and returns the events about this. They are sent before the end of a run that was not continued here. */
  end?: () => Promise<readonly RunEvent[]>
}

/** The part of a request from which its run can be started again (D20.6). */
export type KeptRequest = ApiType<'KeptRequest'>

export type RunKind = 'run' | 'message' | 'flow' | 'plan'
/** Facts that are recorded about a run in addition to its own fields. */
export type RunAbout = {
  customer_id?: string | undefined
  /** The caller's own pairs (D42.5). */
  metadata?: Readonly<Record<string, string>> | undefined
  /** The files of its prompt. */
  attachments?: AttachedFile[] | undefined
  /** The name of the flow, if this is the run of a flow. */
  flow?: string
  trace_id?: string
  plan_id?: string
  /** The first sentence of the prompt, or the title of the plan. */
  title?: string
  /** The time at which the run ends with `timeout` (D54.8). */
  deadline_at?: string | undefined
  /** What began it. */
  request?: KeptRequest | undefined
}

/** The facts of a run that never change. */
export class RunFacts {
  readonly id: string
  readonly tenant: TenantId
  readonly sessionId: string | undefined
  readonly kind: RunKind
  readonly workspace: string
  readonly needsNoReader: boolean
  /** The caller's own pairs. */
  readonly metadata: RunAbout['metadata']
  readonly startedAt: Date
  /** When the run ends with `timeout`, in milliseconds since 1970; `undefined`: it has no deadline. */
  readonly deadlineMs: number | undefined

  constructor({ id, tenant, sessionId, workspace, startedAt, needsNoReader, kind, about }: RunIdentity) {
    this.id = id
    this.tenant = tenant
    this.sessionId = sessionId
    this.workspace = workspace ?? id
    this.startedAt = startedAt ?? new Date()
    this.needsNoReader = needsNoReader ?? false
    this.metadata = about?.metadata
    this.deadlineMs = about?.deadline_at === undefined ? undefined : Date.parse(about.deadline_at)
    this.kind = kind ?? (sessionId === undefined ? 'run' : 'message')
  }

  /** The session's id, or this run's own when it has no session: the first id of a permission reply's path (D4.1). */
  get scopeId(): string {
    return this.sessionId ?? this.id
  }
}

/** The name of a run's span, by OpenTelemetry's conventions for agents. */
export const spanNameOf = ({ kind }: RunFacts): string => SPANS[kind]

/** The attributes of a run's span, by the same conventions. */
export function attributesOf({ id, tenant, sessionId, kind, metadata }: RunFacts): Attributes {
  return {
    'agent_engine.run_id': id,
    'agent_engine.tenant': tenant,
    'gen_ai.conversation.id': sessionId,
    ...prefixed('agent_engine.metadata.', metadata),
    ...(SPANS[kind] === SPANS.run && { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'agent-engine' }),
  }
}

const prefixed = (prefix: string, pairs: RunAbout['metadata'] = {}): Attributes =>
  Object.fromEntries(Object.entries(pairs).map(([key, value]) => [prefix + key, value]))

const SPANS = { run: 'invoke_agent', message: 'invoke_agent', flow: 'execute_flow', plan: 'execute_plan' } as const

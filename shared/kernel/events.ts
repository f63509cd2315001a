/** Codes of the `error` event. Clients may rely on them (D4.8). */
export type RunErrorCode =
  | 'provider_auth'
  | 'provider_rate_limited'
  | 'provider_unavailable'
  | 'provider_rejected'
  | 'context_too_long'
  | 'content_filtered'
  | 'unsupported_attachment'
  | 'max_turns_exceeded'
  | 'invalid_output'
  | 'budget_exhausted'
  | 'no_room'
  | 'cancelled'
  | 'session_deleted'
  | 'worker_lost'
  | 'worker_draining'
  | 'slow_consumer'
  | 'stream_gap'
  | 'relay_unavailable'
  | 'storage_unavailable'
  | 'timeout'
  | 'internal'

/** Codes of the `warning` event (D4.9). */
export type WarningCode =
  | 'transport_retrying'
  | 'provider_failover'
  | 'context_compacted'
  | 'tool_output_truncated'
  | 'output_truncated'
  | 'output_repaired'
  | 'output_invalid'
  | 'context_window'
  | 'context_cut'
  | 'tools_left_out'
  | 'customer_scope_fallback'
  | 'price_unknown'
  | 'session_not_stored'
  | 'run_recovered'
  | 'workspace_not_stored'
  | 'waiting_for_permission'
  | 'waiting_for_batch'

export type JsonObject = { [key: string]: unknown }

/** The usage of a run: in `done`, and in the `error` or `plan_queued` of a run that had begun. `turn_count` counts complete turns only (D4.10). */
export type RunTotals = {
  total_input_tokens: number
  total_output_tokens: number
  total_tokens: number
  cost_usd: number
  turn_count: number
  cache_read_tokens?: number
  cache_write_tokens?: number
}

export type ErrorEvent = Partial<RunTotals> & {
  type: 'error'
  error: string
  code: RunErrorCode
  detail: string
  suggestion: string
  retryable: boolean
  /** Only for the `worker_lost` of a message whose session is stored: another worker continues the session (D32). */
  session_kept?: true
  /** Only for `invalid_output`: why the last try is invalid. */
  problems?: readonly OutputProblem[]
  /** Only for `no_room`, when there may be room, and for `budget_exhausted`, when the next budget period begins. */
  retry_after_secs?: number
}

export type WarningEvent = {
  type: 'warning'
  code: WarningCode
  message: string
  detail: JsonObject
  /** Only for `transport_retrying`, which carries these two in `detail` as well (D4.9). */
  category?: string
  reason?: string
}

/** The run waits for a place among those of its tenant (D54). Its number is 0, as it is no event of the run. `expected_start` is `null` while it is not known. */
export type WaitingEvent = { type: 'waiting'; place: number; expected_start: string | null }

export type TurnEndEvent = {
  type: 'turn_end'
  turn_number: number
  input_tokens: number
  output_tokens: number
  cost_usd: number
  /** Parts of `input_tokens`; present when the provider's cache was read or written. */
  cache_read_tokens?: number
  cache_write_tokens?: number
}

/** `output` is the value of a run that was started with a `response_schema` (D41). */
export type DoneEvent = RunTotals & { type: 'done'; stop_reason: 'end_turn' | 'stop_sequence'; output?: unknown }

/** `id` is the request's, `tool_use_id` that of the call which waits. Without a reply it is denied at `expires_at`. */
type OfPermission = { id: string; tool_use_id: string; tool_name: string }

/** The effect of a tool call, for the person who is asked for permission. Hidden characters are shown as escapes. */
export type PermissionPreview =
  | { kind: 'diff'; path: string; diff: string }
  | { kind: 'command'; command: string }
  | { kind: 'request'; method: 'GET'; url: string }
  /** The call asks for an answer: the fields of a form, or that a person opens an address (D40.4). */
  | { kind: 'form'; schema: JsonObject }
  | { kind: 'link'; url: string }

/** `cancelled`: the request was withdrawn before a reply came. */
export type PermissionResolution = 'reply' | 'timeout' | 'cancelled'

/** The client executes the call, and must answer by `expires_at` (D45). Missing for a run that ends with its calls. */
export type ClientExecution = { executor: 'client'; expires_at?: string }
/** For a call that the client executes: how it was answered, and the caller who sent the answer. */
type ClientAnswered = { how: PermissionResolution; by?: string }

type Asked = { input: JsonObject; message: string; preview?: PermissionPreview }

/** `reason` may be empty. `by` is the caller who replied, `input` the call's input if the reply has changed it. */
type PermissionOutcome = {
  allow: boolean
  how: PermissionResolution
  reason: string
  by?: string
  input?: JsonObject
}

/** Set for a sub-agent of a sub-agent (D4.13). */
type Parentage = { parent_subagent_id?: string }

export type SubAgentStatus = 'running' | 'completed' | 'failed' | 'cancelled'

export type SubAgentStartEvent = Parentage & {
  type: 'subagent_start'
  subagent_id: string
  description?: string
  cwd?: string
  model?: string
  start_time_ms: number
}

/** Wraps an event of a sub-agent's run: `event_type` is its type, its fields are added beside it. */
export type SubAgentEvent = Parentage & { type: 'subagent_event'; subagent_id: string; event_type: string } & JsonObject

export type SubAgentEndEvent = Parentage & {
  type: 'subagent_end'
  subagent_id: string
  duration_ms: number
  status: SubAgentStatus
  result: string
  error?: string
}

/** Ends a run whose approved plan was queued; `note` says why it was not. */
export type PlanQueuedEvent = Partial<RunTotals> & { type: 'plan_queued' } & ({ plan_id: string } | { note: string })

/** A text that a person has sent to a running run. `by` is the caller. */
export type Steer = { id: string; text: string; by?: string }

/** A file that a run has delivered (D50). */
export type Artifact = { file_id: string; name: string; media_type: string; bytes: number; title?: string }

/** How many files of a run its record and its answer name; the list of files has all. */
export const MAX_ARTIFACTS = 200

/** An event of a run (api.md "Events"): `type` becomes the frame's event name, the other fields its data. */
export type AgentEvent =
  | { type: 'text_delta'; text: string }
  | { type: 'text'; text: string }
  | { type: 'thinking_delta'; text: string }
  | { type: 'thinking'; text: string }
  | ({ type: 'tool_use'; id: string; tool_name: string; input: JsonObject } & Partial<ClientExecution>)
  | ({
      type: 'tool_result'
      id: string
      tool_name: string
      output: string
      is_error: boolean
    } & Partial<ClientAnswered>)
  /** Comes before the `tool_result` of the call. */
  | ({ type: 'artifact'; tool_use_id: string } & Artifact)
  | { type: 'tool_progress'; id: string; tool_name: string; progress: number; detail: string }
  | (OfPermission & { type: 'permission_request'; expires_at: string } & Asked)
  /** Comes before the `tool_result`. A run that ends while a request is pending sends none for it. */
  | (OfPermission & { type: 'permission_resolved' } & PermissionOutcome)
  | { type: 'turn_start'; turn_number: number; model: string }
  /** Comes after the `turn_start` of the turn whose model call reads it (D49). */
  | ({ type: 'steered' } & Steer)
  | TurnEndEvent
  | DoneEvent
  | ErrorEvent
  | WarningEvent
  | SubAgentStartEvent
  | SubAgentEvent
  | SubAgentEndEvent
  | PlanQueuedEvent

/** Whether a flow's output fits its schema (D6.4). */
export type Verdict = 'ok' | 'invalid_output'

/** A problem of an output: `path` is a JSON pointer into it, empty for the whole. */
export type OutputProblem = { path: string; message: string }

/** The answer of a flow's run: the body of the synchronous form, and the `result` event (api.md "Named flows" 7). */
export type FlowAnswer = {
  flow_id: string
  flow_version: number
  trace_id: string
  verdict: Verdict
  /** `null` when the verdict is `invalid_output`. */
  output: unknown
  /** Why the last try is invalid; only with the verdict `invalid_output`. */
  problems?: readonly OutputProblem[]
  served_instance: string
  /** The files that its agents have delivered (D50); absent when they have none. */
  artifacts?: readonly Artifact[]
}

/** Why a flow's run failed: an HTTP status, and the error of the envelope (api.md "Errors"). `retry_after_secs` counts from its end. */
export type FlowFailure = { status: number; type: string; message: string; code?: string; retry_after_secs?: number }

/** `at` is the time of the event; the replay of a dispatch sends the same. */
type Timed = { at: string }

/** An event of a flow's run (api.md "Named flows" 7). `agent` is `main` or the name of a sub-agent. */
export type FlowEvent = Timed &
  (
    | {
        type: 'started'
        trace_id: string
        flow_id: string
        flow_version: number
        provider_instance: string
        model: string
      }
    | {
        type: 'progress'
        agent: string
        turn_number: number
        model: string
        input_tokens: number
        output_tokens: number
        cost_usd: number
        cache_read_tokens?: number
        cache_write_tokens?: number
        /** Why the agent's previous try was invalid; missing in its first try. */
        problems?: readonly OutputProblem[]
      }
    | (WarningEvent & { agent: string })
    | ({ type: 'result' } & FlowAnswer)
    | (ErrorEvent & { status: number; trace_id: string })
  )

/** An event of a queued plan's stream. The last one is `plan_ended`. */
export type PlanEvent = Timed & { plan_id: string } & (
    | { type: 'plan_started' }
    | { type: 'step_started'; step_id: string }
    | {
        type: 'step_ended'
        step_id: string
        status: 'pending' | 'running' | 'done' | 'failed' | 'skipped'
        error?: string
      }
    | { type: 'plan_ended'; status: 'queued' | 'running' | 'done' | 'failed' | 'cancelled'; error?: string }
  )

/** Every event that a run's stream can carry. */
export type RunEvent = AgentEvent | FlowEvent | PlanEvent | WaitingEvent

const TERMINAL = new Set<RunEvent['type']>(['done', 'error', 'plan_queued', 'result', 'plan_ended'])

/** Returns whether this event ends the stream (D4.4). */
export const isTerminal = (event: RunEvent): boolean => TERMINAL.has(event.type)

const RETRYABLE = new Set<RunErrorCode>([
  'no_room',
  'provider_rate_limited',
  'provider_unavailable',
  'worker_lost',
  'worker_draining',
  'stream_gap',
  'relay_unavailable',
  'storage_unavailable',
  'timeout',
])

const SUGGESTION: Record<RunErrorCode, string> = {
  provider_auth: "Check the provider's API key (MODEL_API_KEY or the provider's own variable).",
  provider_rate_limited: 'Wait a moment and send the prompt again, or raise the limit at the provider.',
  provider_unavailable:
    'Send the prompt again; if it keeps failing, check the address of the provider and its status page.',
  provider_rejected: "Check the model's name and the request: the provider rejects it as it is.",
  context_too_long: 'Shorten the prompt or start a new session.',
  content_filtered: "Change the prompt: the provider's filter stopped the answer.",
  unsupported_attachment: 'Send the prompt without the file, or to a model that takes it.',
  max_turns_exceeded: 'Raise max_turns, or ask for less in one prompt.',
  invalid_output: 'Ask for less in one prompt, simplify the schema, or use a model that follows schemas better.',
  budget_exhausted: 'Wait until the budget begins anew, or raise it with PUT /config/limits.',
  no_room: 'Send the prompt again later, or with a longer wait_secs.',
  cancelled: 'Send the prompt again if the answer is still wanted.',
  session_deleted: 'Create a new session.',
  worker_lost: 'Send the prompt again; a lost session has to be created anew.',
  worker_draining: 'Send the prompt again; another worker will take it.',
  slow_consumer: 'Read the stream faster, or come back with GET /runs/{run_id}/events and Last-Event-ID.',
  stream_gap: 'Ask GET /runs/{run_id} how the run ended, or send the prompt again.',
  relay_unavailable: 'Come back with GET /runs/{run_id}/events and Last-Event-ID.',
  storage_unavailable: 'Send the prompt again when the store is back.',
  timeout: 'Send the prompt again; a smaller request may be answered in time.',
  internal: 'Send the prompt again and report the X-Request-ID if it keeps failing.',
}

export const RUN_ERROR_CODES = Object.keys(SUGGESTION) as readonly RunErrorCode[]

/** Builds a run's terminal failure. `error` is the message (its name is kept for compatibility, api.md "Versioning" 3), `detail` adds to it. */
export function errorEvent(code: RunErrorCode, error: string, detail = ''): ErrorEvent {
  return { type: 'error', error, code, detail, suggestion: SUGGESTION[code], retryable: RETRYABLE.has(code) }
}

/** Returns `end` with the usage of `last`, the event with which the run would have ended. */
export function insteadOf<T extends RunEvent>(last: RunEvent, end: T): T {
  const used = TOTALS.flatMap((field) => (field in last ? [[field, last[field as keyof RunEvent]]] : []))
  return { ...end, ...Object.fromEntries(used) }
}

const TOTALS = [
  'total_input_tokens',
  'total_output_tokens',
  'total_tokens',
  'cost_usd',
  'turn_count',
  'cache_read_tokens',
  'cache_write_tokens',
] as const satisfies (keyof RunTotals)[]

/** The failure of a message whose session continues at another worker (D32). */
export const sessionKept = (error: string): ErrorEvent => ({
  ...errorEvent('worker_lost', error),
  suggestion: 'Send the message again to the same session.',
  session_kept: true,
})

import type { Priority } from '../../agent/providers/port.ts'
import type { Artifact, FlowFailure, JsonObject, OutputProblem } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { ApiType } from '../../platform/api/api-type.ts'

/** A sub-agent of a flow (api.md "Flow definition"). */
export type SubAgentDefinition = {
  name: string
  /** A template. */
  prompt: string
  output_schema: JsonObject
  tools: readonly string[]
  /** Without it: the model of the call. */
  model?: string
  /** Without it: the instance of the call, and its fallback. */
  provider_instance?: string
}

/** A flow as data (api.md "Flow definition"), with its defaults filled in. */
export type FlowDefinition = {
  input_schema: JsonObject
  output_schema: JsonObject
  system_prompt_template?: string
  /** Replaces the JSON envelope of `input` and `sub_outputs` as the main agent's prompt. */
  user_prompt_template?: string
  tools: readonly string[]
  model?: string
  sub_agents: readonly SubAgentDefinition[]
  evolve: boolean
}

/** The values that a template's references resolve to. `sub_outputs` is empty while the sub-agents run. */
export type TemplateValues = { input: JsonObject; sub_outputs: JsonObject; memory: string }

/** A parsed template. `render` never fails: a value that is absent becomes the empty text. */
export type Template = { render(values: TemplateValues): string }

/** The parsed templates of a flow; `subAgents` holds the prompt of each sub-agent by its name. */
export type FlowTemplates = { system?: Template; user?: Template; subAgents: ReadonlyMap<string, Template> }

export const FLOW_STATES = ['draft', 'published'] as const
export type FlowState = (typeof FLOW_STATES)[number]

/** A flow as it is stored. */
export type Flow = {
  name: string
  /** Identifies the flow from its creation to its deletion: a flow that is created again under the same name has another. */
  uid: string
  version: number
  state: FlowState
  definition: FlowDefinition
  created_at: string
  updated_at: string
  /** The version that was published last; `null` when none was. */
  published_version: number | null
  /** The published version that runs although the newest one is a draft; absent when none does. */
  kept_version?: number
  is_built_in: boolean
  /** JSON pointers of the unknown fields in the body from which it was saved. */
  ignored_fields?: readonly string[]
}

/** The version of a flow that runs; `null` when none does. */
export const servedVersion = ({ state, version, kept_version }: Pick<Flow, 'state' | 'version' | 'kept_version'>) =>
  state === 'published' ? version : (kept_version ?? null)

/** The version of a flow that a dispatch runs. */
export type FlowRef = Pick<Flow, 'name' | 'uid' | 'version'>

export type FlowRunRequest = ApiType<'FlowRunRequest'>

/** The instance and model that serve a call; instances are names, never types. */
export type FlowRoute = { instance: string; model: string }

export const DISPATCH_STATUSES = ['queued', 'running', 'ok', 'invalid_output', 'error', 'rejected'] as const
export type DispatchStatus = (typeof DISPATCH_STATUSES)[number]

export const DISPATCH_KINDS = ['run', 'evaluation', 'batch'] as const
/**
 * `evaluation`: a draft's run for `POST /flows/{name}/evaluate`, which the history of the flow does not show. `batch`: an item of a batch, whose id
 * is its `idempotency_key`; only the job of its chunk ends it.
 */
export type DispatchKind = (typeof DISPATCH_KINDS)[number]

/**
 * One execution of a flow, from its beginning (api.md "Flow execution record"). queued -> running -> ok | invalid_output |
 * error, or rejected from the start. Each change is a compare-and-set.
 */
export type Dispatch = {
  trace_id: string
  kind: DispatchKind
  subject: string
  flow: FlowRef
  provider_instance: string
  model: string
  fallback: FlowRoute | null
  served_instance: string | null
  /** The priority of its model calls; absent: `normal`. */
  priority?: Priority
  /** Set if it has time until then and no client waits (D54.8). Absent: it runs at once. */
  deadline_at?: string
  idempotency_key: string | null
  status: DispatchStatus
  error: FlowFailure | null
  started_at: string
  ended_at: string | null
  duration_ms: number | null
  turns: number
  input_tokens: number
  output_tokens: number
  cost_usd: number
  /** Parts of `input_tokens`; missing in older records. */
  cache_read_tokens?: number
  cache_write_tokens?: number
  /** The epoch of the executor that runs it or has run it; `null` while it is queued. */
  executor: number | null
  /**
   * Whether its attempt may have changed something: `false` at first, set to `true` before the first call of a tool that changes something (D34.2).
   */
  has_acted?: boolean
  /** While it is queued: it waits for a vendor, and need not be looked at before. */
  look_at_ms?: number
  /** How often executors have begun it; absent for the first time. */
  starts?: number
  /** Whether input and output stay when it has ended (`audit.store_payloads`). */
  keeps_payloads: boolean
  /** When the record is deleted (`audit.retention_days`). */
  expires_at: string
  /** Identifies the output that was stored with the end; absent when none was. Only the store sets it. */
  output_id?: string
}

/** One event of an execution, for its replay: `event` is the type, `at` the time, `data` holds the other fields. */
export type TimelineEntry = { event: string; at: string; data: JsonObject }

/** The result of an execution. */
export type DispatchOutput = {
  raw_output: string
  output: unknown
  timeline: readonly TimelineEntry[]
  /** Why the output of an `invalid_output` is invalid. */
  problems?: readonly OutputProblem[]
  artifacts?: readonly Artifact[]
}

/** Fields that change when an execution ends. */
export type DispatchEnd = Pick<
  Dispatch,
  | 'served_instance'
  | 'error'
  | 'turns'
  | 'input_tokens'
  | 'output_tokens'
  | 'cost_usd'
  | 'cache_read_tokens'
  | 'cache_write_tokens'
> & { status: Exclude<DispatchStatus, 'queued' | 'running'> }

/** Stores executions. Every method throws `unavailable` when the store does not answer. */
export interface Dispatches {
  /** Stores a dispatch, queued or rejected, together with its input. A queued one survives a power failure only when its job does. */
  create(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void>
  get(tenant: TenantId, traceId: string): Promise<Dispatch | undefined>
  input(tenant: TenantId, traceId: string): Promise<JsonObject | undefined>
  /** The result that ended the dispatch, as the executor stored it; `undefined` before the end, or when payloads are not kept and 24 h have passed. */
  output(tenant: TenantId, dispatch: Dispatch): Promise<DispatchOutput | undefined>
  /**
   * queued -> running, for the executor of this epoch. Returns the dispatch as it is now, or `undefined` when it was not queued. A short input comes with
   * it: `input` need not read it.
   */
  begin(tenant: TenantId, traceId: string, executor: number): Promise<Dispatch | undefined>
  /** running at a dead executor -> running here, once more (D34.2). Returns the dispatch as it is now, or `undefined` when it may not begin again. */
  takeOver(tenant: TenantId, traceId: string, by: { from: number; executor: number }): Promise<Dispatch | undefined>
  /** Records that this executor may change something for it from now on. Returns `false` when the executor no longer runs it. */
  noteAction(tenant: TenantId, traceId: string, executor: number): Promise<boolean>
  /**
   * running -> ended, when the executor of this epoch still runs it; `executor: null` ends a queued one. The output is stored
   * before the status, so that every ended dispatch has it. An output that is too long to be stored ends the dispatch with an error
   * instead. Returns the dispatch as it is now, or `undefined` when another process ended it first, also when that was an earlier
   * call of this one whose answer was lost. `mayWrite` is read before each write: a process that may no longer act writes nothing
   * and gets `undefined`.
   */
  end(
    tenant: TenantId,
    traceId: string,
    end: { executor: number | null; result: DispatchEnd; output?: DispatchOutput; mayWrite?: () => boolean },
  ): Promise<Dispatch | undefined>
}

export type DispatchQuery = {
  kind: DispatchKind
  /** Name of a flow. */
  flow?: string | undefined
  status?: DispatchStatus | undefined
  /** Bounds of `started_at` in milliseconds since 1970: from `sinceMs` on, and before `untilMs`. */
  sinceMs?: number | undefined
  untilMs?: number | undefined
  /** 1 to 200. */
  limit: number
  cursor?: string | undefined
}
export type DispatchPage = { dispatches: Dispatch[]; next_cursor: string | null }

/** Executions and their history. */
export interface DispatchStore extends Dispatches {
  /**
   * A queued dispatch that this process has just created, for the first caller only. It may have begun since: only a caller that also gets the
   * start notice of its run may use it.
   */
  takeCreated(tenant: TenantId, traceId: string): Dispatch | undefined
  /** Has a queued dispatch that waits for a vendor looked at by this time, in milliseconds since 1970. Returns `false` when it is not queued any more. */
  park(tenant: TenantId, traceId: string, lookAtMs: number): Promise<boolean>
  /** Newest first. Throws `invalid_request` for an invalid cursor. */
  list(tenant: TenantId, query: DispatchQuery): Promise<DispatchPage>
  /** Deletes records that started before this time, with their payloads, at most `limit`. Returns how many. */
  removeStartedBefore(tenant: TenantId, beforeMs: number, limit: number): Promise<number>
}

import { expect } from 'chai'
import type { ErrorCode, ErrorKind } from '../../../shared/kernel/errors.ts'
import type {
  AgentEvent,
  FlowEvent,
  PermissionResolution,
  PlanEvent,
  RunErrorCode,
  SubAgentStatus,
  WaitingEvent,
  WarningCode,
} from '../../../shared/kernel/events.ts'
import type { ReasoningEffort } from '../../../shared/kernel/model-options.ts'
import type { InstanceType, Role, WebhookEventType } from '../../../shared/tenancy/tenant-config/config.ts'
import { apiDocument } from '../../support/api-document.ts'

// The compiler compares these tables with the types of the code, and the tests compare them with the document.

/** Every member of a union, none more and none less. */
const members = <T extends string>(table: Record<T, true>): string[] => Object.keys(table).toSorted()

/** A field of any value is required, unless it may be left out: only its value may be absent. */
type Presence<E, K extends keyof E> = [E] extends [Record<K, unknown>]
  ? unknown extends E[K]
    ? 'required'
    : undefined extends E[K]
      ? 'optional'
      : 'required'
  : 'optional'
type EventOf<T extends (AgentEvent | WaitingEvent)['type']> = Extract<AgentEvent | WaitingEvent, { type: T }>
/** Which fields an event has. */
type Fields<E> = { [K in Exclude<keyof E, 'type'>]-?: Presence<E, K> }

const SPENT = { cost_usd: 'required', cache_read_tokens: 'optional', cache_write_tokens: 'optional' } as const
const TOTALS = {
  total_input_tokens: 'optional',
  total_output_tokens: 'optional',
  total_tokens: 'optional',
  cost_usd: 'optional',
  turn_count: 'optional',
  cache_read_tokens: 'optional',
  cache_write_tokens: 'optional',
} as const
const ERROR = {
  ...TOTALS,
  error: 'required',
  code: 'required',
  detail: 'required',
  suggestion: 'required',
  retryable: 'required',
  session_kept: 'optional',
  problems: 'optional',
  retry_after_secs: 'optional',
} as const
const CALL = { id: 'required', tool_name: 'required' } as const
const FILE = {
  file_id: 'required',
  name: 'required',
  media_type: 'required',
  bytes: 'required',
  title: 'optional',
} as const
const AGENT = { subagent_id: 'required', parent_subagent_id: 'optional' } as const

/** The events whose fields the types name one by one; `subagent_event` and `plan_queued` are in `contract.test.ts`. */
const FIELDS: {
  [T in Exclude<(AgentEvent | WaitingEvent)['type'], 'subagent_event' | 'plan_queued'>]: Fields<EventOf<T>>
} = {
  text_delta: { text: 'required' },
  text: { text: 'required' },
  thinking_delta: { text: 'required' },
  thinking: { text: 'required' },
  tool_use: { ...CALL, input: 'required', executor: 'optional', expires_at: 'optional' },
  tool_result: { ...CALL, output: 'required', is_error: 'required', how: 'optional', by: 'optional' },
  tool_progress: { ...CALL, progress: 'required', detail: 'required' },
  artifact: { ...FILE, tool_use_id: 'required' },
  permission_request: {
    ...CALL,
    input: 'required',
    message: 'required',
    preview: 'optional',
    tool_use_id: 'required',
    expires_at: 'required',
  },
  permission_resolved: {
    ...CALL,
    tool_use_id: 'required',
    allow: 'required',
    how: 'required',
    reason: 'required',
    by: 'optional',
    input: 'optional',
  },
  turn_start: { turn_number: 'required', model: 'required' },
  steered: { id: 'required', text: 'required', by: 'optional' },
  turn_end: { ...SPENT, turn_number: 'required', input_tokens: 'required', output_tokens: 'required' },
  done: {
    ...SPENT,
    total_input_tokens: 'required',
    total_output_tokens: 'required',
    total_tokens: 'required',
    turn_count: 'required',
    stop_reason: 'required',
    output: 'optional',
  },
  error: ERROR,
  warning: { code: 'required', message: 'required', detail: 'required', category: 'optional', reason: 'optional' },
  waiting: { place: 'required', expected_start: 'required' },
  subagent_start: {
    ...AGENT,
    description: 'optional',
    cwd: 'optional',
    model: 'optional',
    start_time_ms: 'required',
  },
  subagent_end: { ...AGENT, duration_ms: 'required', status: 'required', result: 'required', error: 'optional' },
}

type FlowEventOf<T extends FlowEvent['type']> = Extract<FlowEvent, { type: T }>
const RESULT = { flow_id: 'required', flow_version: 'required', trace_id: 'required' } as const
const ROUTE = { provider_instance: 'required', model: 'required' } as const
const TURN = { turn_number: 'required', input_tokens: 'required', output_tokens: 'required' } as const

const FLOW_FIELDS: { [T in FlowEvent['type']]: Fields<FlowEventOf<T>> } = {
  started: { at: 'required', trace_id: 'required', flow_id: 'required', flow_version: 'required', ...ROUTE },
  progress: {
    at: 'required',
    agent: 'required',
    model: 'required',
    ...SPENT,
    problems: 'optional',
    ...TURN,
  },
  warning: { ...FIELDS.warning, at: 'required', agent: 'required' },
  result: {
    ...RESULT,
    at: 'required',
    verdict: 'required',
    problems: 'optional',
    artifacts: 'optional',
    output: 'required',
    served_instance: 'required',
  },
  error: { ...FIELDS.error, at: 'required', status: 'required', trace_id: 'required' },
}

type PlanEventOf<T extends PlanEvent['type']> = Extract<PlanEvent, { type: T }>
const OF_PLAN = { at: 'required', plan_id: 'required' } as const

const PLAN_FIELDS: { [T in PlanEvent['type']]: Fields<PlanEventOf<T>> } = {
  plan_started: OF_PLAN,
  step_started: { ...OF_PLAN, step_id: 'required' },
  step_ended: { ...OF_PLAN, step_id: 'required', status: 'required', error: 'optional' },
  plan_ended: { ...OF_PLAN, status: 'required', error: 'optional' },
}

const RUN_ERRORS = members<RunErrorCode>({
  provider_auth: true,
  provider_rate_limited: true,
  provider_unavailable: true,
  provider_rejected: true,
  context_too_long: true,
  content_filtered: true,
  unsupported_attachment: true,
  max_turns_exceeded: true,
  invalid_output: true,
  budget_exhausted: true,
  no_room: true,
  cancelled: true,
  session_deleted: true,
  worker_lost: true,
  worker_draining: true,
  slow_consumer: true,
  stream_gap: true,
  relay_unavailable: true,
  storage_unavailable: true,
  timeout: true,
  internal: true,
})

const WARNINGS = members<WarningCode>({
  transport_retrying: true,
  provider_failover: true,
  context_compacted: true,
  tool_output_truncated: true,
  output_repaired: true,
  output_invalid: true,
  context_window: true,
  context_cut: true,
  tools_left_out: true,
  output_truncated: true,
  customer_scope_fallback: true,
  price_unknown: true,
  session_not_stored: true,
  run_recovered: true,
  workspace_not_stored: true,
  waiting_for_permission: true,
  waiting_for_batch: true,
})

const ERROR_KINDS = members<ErrorKind>({
  invalid_request: true,
  authentication: true,
  permission: true,
  not_found: true,
  conflict: true,
  rate_limit: true,
  internal: true,
  upstream: true,
  unavailable: true,
})

const ERROR_CODES = members<ErrorCode>({
  config_disabled: true,
  egress_refused: true,
  egress_timeout: true,
  egress_too_large: true,
  egress_unreachable: true,
  fenced: true,
  idempotency_mismatch: true,
  invalid_token: true,
  master_key_missing: true,
  missing_scope: true,
  secret_missing: true,
  secret_unreadable: true,
  worker_draining: true,
  worker_silent: true,
})

const WEBHOOK_EVENTS = members<WebhookEventType>({
  'run.ended': true,
  'permission.requested': true,
  'tool_call.requested': true,
  'plan.ended': true,
  'flow.ended': true,
  'batch.ended': true,
  'budget.threshold': true,
})

const ROLES = members<Role>({ main: true, subagent: true, plan: true, compact: true, transcription: true })

const INSTANCE_TYPES = members<InstanceType>({
  openai: true,
  anthropic: true,
  google: true,
  'openai-compatible': true,
  ollama: true,
  demo: true,
})

const EFFORTS = members<ReasoningEffort>({
  none: true,
  minimal: true,
  low: true,
  medium: true,
  high: true,
  xhigh: true,
})
const RESOLUTIONS = members<PermissionResolution>({ reply: true, timeout: true, cancelled: true })
const AGENT_STATES = members<SubAgentStatus>({ running: true, completed: true, failed: true, cancelled: true })

type Described = {
  required?: string[]
  properties: Record<string, Described>
  allOf?: Described[]
  oneOf?: Described[]
  const?: string
  enum?: string[]
  $ref?: string
}

describe('the API description names the same as the code', () => {
  let schemas: Record<string, Described>
  before(async () => {
    const { components } = await apiDocument()
    schemas = components.schemas as unknown as typeof schemas
  })

  const enumOf = (name: string, ...fields: string[]) =>
    fields.reduce<Described | undefined>((at, field) => at?.properties[field], schemas[name])?.enum?.toSorted()

  const nameOf = ($ref = '') => $ref.replace('#/components/schemas/', '')

  /** The schema of each event's data. */
  const dataSchemas = (frame = 'EventFrame') =>
    (schemas[frame]?.oneOf ?? []).map(({ properties: { event, data } }) => ({
      event: event?.const ?? '',
      schema: nameOf(data?.$ref),
    }))

  /** Which fields a schema describes, those of the schema that it extends included. */
  const fieldsOf = ({
    properties = {},
    required = [],
    allOf = [],
    $ref,
  }: Partial<Described>): Record<string, string> => {
    if ($ref !== undefined) return fieldsOf(schemas[nameOf($ref)] ?? {})
    const own = Object.keys(properties).map((field) => [field, required.includes(field) ? 'required' : 'optional'])
    return Object.assign({}, ...allOf.map(fieldsOf), Object.fromEntries(own)) as Record<string, string>
  }

  it('the events', () => {
    const events = dataSchemas().map(({ event }) => event)
    expect(events.toSorted()).to.deep.equal([...Object.keys(FIELDS), 'plan_queued', 'subagent_event'].toSorted())
  })

  for (const [event, fields] of Object.entries(FIELDS)) {
    it(`the fields of ${event}`, () => {
      const { schema } = dataSchemas().find((each) => each.event === event) ?? { schema: '' }
      expect(fieldsOf(schemas[schema] ?? {})).to.deep.equal(fields)
    })
  }

  it('the events of a flow', () => {
    const events = new Set(dataSchemas('FlowEventFrame').map(({ event }) => event))
    expect([...events].toSorted()).to.deep.equal([...Object.keys(FLOW_FIELDS), 'waiting'].toSorted())
  })

  for (const [event, fields] of Object.entries(FLOW_FIELDS)) {
    it(`the fields of a flow's ${event}`, () => {
      const { schema } = dataSchemas('FlowEventFrame').find((each) => each.event === event) ?? { schema: '' }
      expect(fieldsOf(schemas[schema] ?? {})).to.deep.equal(fields)
    })
  }

  it('the events of a plan, and the error of a connection', () => {
    const events = dataSchemas('PlanEventFrame').map(({ event }) => event)
    expect(events.toSorted()).to.deep.equal(['error', ...Object.keys(PLAN_FIELDS)].toSorted())
  })

  for (const [event, fields] of Object.entries(PLAN_FIELDS)) {
    it(`the fields of a plan's ${event}`, () => {
      const { schema } = dataSchemas('PlanEventFrame').find((each) => each.event === event) ?? { schema: '' }
      expect(fieldsOf(schemas[schema] ?? {})).to.deep.equal(fields)
    })
  }

  it("the events of a sub-agent, with the same schemas as the run's own", () => {
    const own = dataSchemas().filter(({ event }) => !/^subagent_|^plan_queued$|^steered$|^waiting$/.test(event))
    const wrapped = (schemas['SubagentEventData']?.oneOf ?? []).map(({ properties, allOf }) => ({
      event: properties['event_type']?.const ?? '',
      schema: nameOf(allOf?.[0]?.$ref),
    }))
    expect(wrapped).to.deep.equal(own)
  })

  const lists: [string, () => string[] | undefined, string[]][] = [
    ['D4.8: the codes of the error event', () => enumOf('RunErrorCode'), RUN_ERRORS],
    ['D4.9: the codes of warnings', () => enumOf('WarningData', 'code'), WARNINGS],
    ['how permission requests are resolved', () => enumOf('PermissionResolvedData', 'how'), RESOLUTIONS],
    ['the states of sub-agents', () => enumOf('SubagentEndData', 'status'), AGENT_STATES],
    ['D2.3: the types of errors', () => enumOf('ErrorType'), ERROR_KINDS.map((kind) => `${kind}_error`).toSorted()],
    ['D2.3: the codes of errors', () => enumOf('ErrorCode'), ERROR_CODES],
    ['D8.1: the roles', () => Object.keys(schemas['Routing']?.properties ?? {}).toSorted(), ROLES],
    ['D8.2: the types of instances', () => enumOf('InstanceType'), INSTANCE_TYPES],
    ['the events of webhooks', () => enumOf('WebhookEventType'), WEBHOOK_EVENTS],
    ['the reasoning efforts', () => enumOf('ModelOptions', 'reasoning_effort'), EFFORTS],
  ]
  for (const [what, described, expected] of lists) {
    it(what, () => expect(described()).to.deep.equal(expected))
  }
})

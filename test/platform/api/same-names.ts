// The compiler compares the types of the code with those of the API description: this file compiles only where both have the same names.
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
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import type { InstanceType, Role, WebhookEventType } from '../../../shared/tenancy/tenant-config/config.ts'

/** `true`, or what only one of the two has. */
type Same<Code, Document> = [Code] extends [Document]
  ? [Document] extends [Code]
    ? true
    : { onlyInDocument: Exclude<Document, Code> }
  : { onlyInCode: Exclude<Code, Document> }

/** A field of any value is required, unless it may be left out: only its value may be absent. */
type Presence<E, K extends keyof E> = [E] extends [Record<K, unknown>]
  ? unknown extends E[K]
    ? 'required'
    : undefined extends E[K]
      ? 'optional'
      : 'required'
  : 'optional'
type Field<E> = { [K in keyof E & string]-?: `${K} ${Presence<E, K>}` }[keyof E & string]

type DataOf<F extends { event: string; data: unknown }, T> = Extract<F, { event: T }>['data']
/** The fields of each event, but for its name. */
type SameFields<Event extends { type: string }, F extends { event: string; data: unknown }> = {
  [T in Event['type']]: Same<Field<Omit<Extract<Event, { type: T }>, 'type'>>, Field<DataOf<F, T>>>
}

type Frame = ApiType<'EventFrame'>
/** The types do not name the fields of these one by one: they are in `contract.test.ts`. */
type FreeForm = { type: 'subagent_event' | 'plan_queued' }
type FlowFrame = ApiType<'FlowEventFrame'>
/** Without the error of a connection, and without a start that waits, which are no events of the flow. */
type OwnFlowFrame = FlowFrame extends infer F ? (F extends { data: { at: unknown } } ? F : never) : never

type InSubAgent = ApiType<'SubagentEventData'>
type OwnEvents = Exclude<Frame['event'], `subagent_${string}` | 'plan_queued' | 'steered' | 'waiting'>
type Parents = { subagent_id: InSubAgent['subagent_id']; parent_subagent_id?: string }
/** The events of a sub-agent have the same data as the run's own. */
type SameInSubAgent = {
  [T in OwnEvents]: Same<Extract<InSubAgent, { event_type: T }>, Parents & { event_type: T } & DataOf<Frame, T>>
}

/** Does not compile where a check is not `true`. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- its constraint is the check
function holds<_Checks extends Record<string, true>>(): void {}

holds<SameFields<Exclude<AgentEvent | WaitingEvent, FreeForm>, Frame>>()
holds<SameFields<FlowEvent, OwnFlowFrame>>()
holds<SameFields<PlanEvent, ApiType<'PlanEventFrame'>>>()
holds<SameInSubAgent>()
holds<{
  'the events': Same<(AgentEvent | WaitingEvent)['type'], Frame['event']>
  'the events of a flow': Same<FlowEvent['type'] | 'waiting', FlowFrame['event']>
  'the events of a plan': Same<PlanEvent['type'] | 'error', ApiType<'PlanEventFrame'>['event']>
  'the events of a sub-agent': Same<OwnEvents, InSubAgent['event_type']>
  'D4.8: the codes of the error event': Same<RunErrorCode, ApiType<'RunErrorCode'>>
  'D4.9: the codes of warnings': Same<WarningCode, ApiType<'WarningData'>['code']>
  'how permission requests are resolved': Same<PermissionResolution, ApiType<'PermissionResolvedData'>['how']>
  'the states of sub-agents': Same<SubAgentStatus, ApiType<'SubagentEndData'>['status']>
  'D2.3: the types of errors': Same<`${ErrorKind}_error`, ApiType<'ErrorType'>>
  'D2.3: the codes of errors': Same<ErrorCode, ApiType<'ErrorCode'>>
  'D8.1: the roles': Same<Role, keyof ApiType<'Routing'>>
  'D8.2: the types of instances': Same<InstanceType, ApiType<'InstanceType'>>
  'the events of webhooks': Same<WebhookEventType, ApiType<'WebhookEventType'>>
  'the reasoning efforts': Same<ReasoningEffort, NonNullable<ApiType<'ModelOptions'>['reasoning_effort']>>
}>()

import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { type CallKey, type OpenCalls, unwrapped, VOID_CALL } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import { type AgUiEvent, callId, custom, type Of } from './events.ts'
import { AgUiMessages, isOfMessages } from './messages.ts'
import { CustomSubAgents, NamedSubAgents, type SubAgents } from './sub-agents.ts'

/** `threadId` and `runId` are the client's; `engineRunId` is the id of the run on this server. `isCurrent`: the client knows version 1.0. */
export type AgUiFacts = {
  threadId: string
  runId: string
  engineRunId: string | undefined
  isCurrent: boolean
  /** The messages that a stream begins with, for a client that does not have them yet. */
  messages?: JsonObject[] | undefined
}

/**
 * Makes AG-UI's events from a run. For AG-UI each request of a client is a run of its own; it ends with an interrupt when the run
 * here waits for a person.
 */
export class AgUiProjection implements Projection<AgUiEvent> {
  readonly #facts: AgUiFacts
  /** The requests for permission that wait, by their ids. */
  readonly #requests = new Map<string, Of<'permission_request'>>()
  readonly #messages = new AgUiMessages()
  readonly #subAgents: SubAgents

  constructor(facts: AgUiFacts) {
    this.#facts = facts
    this.#subAgents = facts.isCurrent ? new NamedSubAgents() : new CustomSubAgents()
  }

  begin(): AgUiEvent[] {
    const { threadId, runId, engineRunId, messages } = this.#facts
    const metadata = engineRunId === undefined ? {} : { metadata: { runId: engineRunId } }
    return [
      { type: 'RUN_STARTED', threadId, runId, ...metadata },
      ...(messages ? [{ type: 'MESSAGES_SNAPSHOT', messages }] : []),
      ...(engineRunId === undefined ? [this.#finished({ type: 'success' })] : []),
    ]
  }

  restart(): void {
    this.#messages.restart()
    this.#subAgents.restart()
  }

  take({ seq, event }: Numbered<AgentEvent>, calls: OpenCalls): AgUiEvent[] {
    const id = `${this.#facts.engineRunId}-${seq}`
    const abandoned = calls.abandoned.map((call, i) => this.#abandon(call, `${id}-${i + 1}`))
    return [...abandoned, ...this.#take(event, id, calls)]
  }

  #take(event: AgentEvent, id: string, calls: OpenCalls): AgUiEvent[] {
    if (isOfMessages(event)) return this.#messages.take(event, id)
    switch (event.type) {
      case 'permission_request':
        this.#requests.set(event.id, event)
        return []
      case 'permission_resolved':
        return calls.askedFor(event.id)?.subagentId === undefined ? resolved(event) : [] // A sub-agent's event has already come in a `subagent_event`.
      case 'subagent_start':
      case 'subagent_end':
        return this.#subAgents.take(event, id)
      case 'subagent_event':
        return this.#nested(event, id)
      case 'warning':
        // A client keeps all messages that it has received, so a repeated turn gets new messages and a new step.
        return calls.beginsAnew ? [...this.#end(), custom(event)] : [custom(event)]
      case 'steered':
      case 'artifact':
        return [custom(event)]
      case 'plan_queued':
      case 'done':
        return [custom(event), ...this.#end(), this.#finished({ type: 'success' }, event)]
      case 'error':
        return this.#fail(event)
    }
  }

  pause(calls: OpenCalls): AgUiEvent[] {
    const asking = Map.groupBy(calls.pending, ([, { subagentId }]) => subagentId)
    const suspended = this.#subAgents.suspend((subagentId) =>
      asking.get(subagentId)?.map(([id]) => this.#interruptId(id)),
    )
    const interrupts = [...calls.pending].flatMap(([id, call]) => this.#interrupt(id, call))
    // The calls that the client executes are no interrupts: it begins its next run with their results.
    const outcome = interrupts.length > 0 ? { type: 'interrupt', interrupts } : { type: 'success' }
    return [...suspended, ...this.#messages.end(), this.#finished(outcome)]
  }

  cut(code: ReaderFailure): AgUiEvent[] {
    return failed(readerFailure(code))
  }

  #nested(wrapped: Of<'subagent_event'>, id: string): AgUiEvent[] {
    const event = unwrapped(wrapped) as AgentEvent
    if (event.type === 'permission_request') this.#requests.set(event.id, event)
    if (event.type === 'permission_resolved') return resolved(event)
    return this.#subAgents.take(wrapped, id)
  }

  /** A call without a result would be a wrong history for a model. */
  #abandon(call: CallKey, messageId: string): AgUiEvent {
    const of = this.#facts.isCurrent && call.subagentId !== undefined ? { subagentRunId: call.subagentId } : {}
    return { type: 'TOOL_CALL_RESULT', ...of, messageId, toolCallId: callId(call), content: VOID_CALL, role: 'tool' }
  }

  #interruptId(requestId: string): string {
    return `${this.#facts.engineRunId}/${requestId}`
  }

  #interrupt(id: string, call: CallKey): JsonObject[] {
    const asked = this.#requests.get(id)
    if (!asked) return []
    const { message, expires_at: expiresAt, tool_name: toolName, input, preview } = asked
    const isNamed = this.#facts.isCurrent && call.subagentId !== undefined
    return [
      {
        id: this.#interruptId(id),
        reason: 'confirmation', // With the reason `tool_call` some clients show the answer in place of the result of the tool (D31.7b).
        message,
        toolCallId: callId(call),
        ...(isNamed && { subagentRunId: call.subagentId }),
        responseSchema: RESPONSE_SCHEMA,
        // Not the protocol's `expiresAt`: after that time clients send no answer and stop, although here a late answer still
        // shows how the run continued (D31.7b).
        metadata: { toolName, input, expiresAt, ...(preview && { preview }) },
      },
    ]
  }

  #end(): AgUiEvent[] {
    return [...this.#subAgents.end(), ...this.#messages.end()]
  }

  /** Version 1.0 distinguishes a stopped run from a failed one. */
  #fail(event: ErrorEvent): AgUiEvent[] {
    if (!this.#facts.isCurrent || !STOPPED.has(event.code)) return failed(event)
    return [...this.#end(), this.#finished({ type: 'cancelled' })]
  }

  #finished(outcome: JsonObject, event?: Of<'done' | 'plan_queued'>): AgUiEvent {
    const { threadId, runId } = this.#facts
    if (event?.type !== 'done') return { type: 'RUN_FINISHED', threadId, runId, outcome }
    const { total_input_tokens: inputTokens, total_output_tokens: outputTokens, total_tokens: totalTokens } = event
    return { type: 'RUN_FINISHED', threadId, runId, outcome, usage: [{ inputTokens, outputTokens, totalTokens }] }
  }
}

const STOPPED: ReadonlySet<string> = new Set<ErrorEvent['code']>(['cancelled', 'session_deleted'])

/** The schema of a person's answer. */
const RESPONSE_SCHEMA = {
  type: 'object',
  required: ['approved'],
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, editedArgs: { type: 'object' } },
}

const resolved = ({ id, allow, how, reason, input }: Of<'permission_resolved'>): AgUiEvent[] => [
  { type: 'CUSTOM', name: 'permission_resolved', value: { id, allow, how, reason, ...(input && { input }) } },
]

type Failure = Pick<ErrorEvent, 'code' | 'error' | 'suggestion' | 'session_kept'>

const failed = ({ code, error, suggestion, session_kept: sessionKept }: Failure): AgUiEvent[] => [
  { type: 'RUN_ERROR', message: `${error}. ${suggestion}`, code, ...(sessionKept && { metadata: { sessionKept } }) },
]

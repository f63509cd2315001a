import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { type CallKey, type OpenCalls, unwrapped } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'

type Of<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>
export type AgUiEvent = JsonObject & { type: string }
/** `threadId` and `runId` are the client's; `engineRunId` is that of the run here. */
export type AgUiFacts = { threadId: string; runId: string; engineRunId: string }

type Block = 'text' | 'thinking'

/** Makes AG-UI's events of a run. Each request of a client is a run of its own there, which ends with an interrupt where this one waits. */
export class AgUiProjection implements Projection<AgUiEvent> {
  readonly #facts: AgUiFacts
  /** The requests for permission that wait, by their ids. */
  readonly #requests = new Map<string, Of<'permission_request'>>()
  #open: { block: Block; id: string } | undefined
  #step: string | undefined

  constructor(facts: AgUiFacts) {
    this.#facts = facts
  }

  begin(): AgUiEvent[] {
    const { threadId, runId } = this.#facts
    return [{ type: 'RUN_STARTED', threadId, runId }]
  }

  /** A step that was begun in an earlier response is none of this one. */
  restart(): void {
    this.#step = undefined
  }

  take({ seq, event }: Numbered<AgentEvent>, calls: OpenCalls): AgUiEvent[] {
    const id = `${this.#facts.engineRunId}-${seq}`
    switch (event.type) {
      case 'turn_start':
        this.#step = `turn-${event.turn_number}`
        return [{ type: 'STEP_STARTED', stepName: this.#step }]
      case 'turn_end':
        return this.#endStep()
      case 'text_delta':
        return this.#delta('text', event.text, id)
      case 'thinking_delta':
        return this.#delta('thinking', event.text, id)
      case 'text':
      case 'thinking':
        return this.#whole(event.type, event.text, id)
      case 'tool_use':
      case 'tool_result':
      case 'tool_progress':
        return ofCall(event, undefined, id)
      case 'permission_request':
        this.#requests.set(event.id, event)
        return []
      case 'permission_resolved':
        return calls.askedFor(event.id)?.subagentId === undefined ? resolved(event) : []
      case 'subagent_event':
        return this.#nested(event, id)
      case 'subagent_start':
      case 'subagent_end':
      case 'warning':
        return [custom(event)]
      case 'plan_queued':
      case 'done':
        return [custom(event), ...this.#endStep(), this.#finished({ type: 'success' }, event)]
      case 'error':
        return failed(event)
    }
  }

  pause(calls: OpenCalls): AgUiEvent[] {
    const interrupts = [...calls.pending].flatMap(([id, call]) => this.#interrupt(id, call))
    return [...this.#close(), ...this.#endStep(), this.#finished({ type: 'interrupt', interrupts })]
  }

  cut(code: ReaderFailure): AgUiEvent[] {
    return failed(readerFailure(code))
  }

  #delta(block: Block, delta: string, id: string): AgUiEvent[] {
    const opened = this.#open?.block === block ? [] : [...this.#close(), ...this.#begin(block, id)]
    const type = block === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
    return delta === '' ? opened : [...opened, { type, messageId: this.#open?.id, delta }]
  }

  #begin(block: Block, messageId: string): AgUiEvent[] {
    this.#open = { block, id: messageId }
    if (block === 'text') return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }]
    return [
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    ]
  }

  #whole(block: Block, text: string, id: string): AgUiEvent[] {
    const rest = this.#open || text === '' ? [] : this.#delta(block, text, id)
    return [...rest, ...this.#close()]
  }

  #close(): AgUiEvent[] {
    if (!this.#open) return []
    const { block, id: messageId } = this.#open
    this.#open = undefined
    if (block === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId }]
    return [
      { type: 'REASONING_MESSAGE_END', messageId },
      { type: 'REASONING_END', messageId },
    ]
  }

  #endStep(): AgUiEvent[] {
    const stepName = this.#step
    this.#step = undefined
    return stepName === undefined ? [] : [{ type: 'STEP_FINISHED', stepName }]
  }

  /** The calls of sub-agents are shown; their texts come as custom events. */
  #nested(wrapped: Of<'subagent_event'>, id: string): AgUiEvent[] {
    const event = unwrapped(wrapped) as AgentEvent
    const { subagent_id: subagentId } = wrapped
    if (event.type === 'permission_request') this.#requests.set(event.id, event)
    if (event.type === 'permission_resolved') return resolved(event)
    if (event.type === 'tool_use' || event.type === 'tool_result' || event.type === 'tool_progress')
      return ofCall(event, subagentId, id)
    return event.type === 'text_delta' || event.type === 'thinking_delta' ? [custom(wrapped)] : []
  }

  #interrupt(id: string, call: CallKey): JsonObject[] {
    const asked = this.#requests.get(id)
    if (!asked) return []
    const { message, expires_at: expiresAt, tool_name: toolName, input, preview } = asked
    return [
      {
        id: `${this.#facts.engineRunId}/${id}`,
        reason: 'tool_call',
        message,
        toolCallId: idOf(call),
        expiresAt,
        responseSchema: RESPONSE_SCHEMA,
        metadata: { toolName, input, ...(preview && { preview }) },
      },
    ]
  }

  #finished(outcome: JsonObject, event?: Of<'done' | 'plan_queued'>): AgUiEvent {
    const { threadId, runId } = this.#facts
    if (event?.type !== 'done') return { type: 'RUN_FINISHED', threadId, runId, outcome }
    const { total_input_tokens: inputTokens, total_output_tokens: outputTokens, total_tokens: totalTokens } = event
    return { type: 'RUN_FINISHED', threadId, runId, outcome, usage: [{ inputTokens, outputTokens, totalTokens }] }
  }
}

/** The schema of a person's answer. */
const RESPONSE_SCHEMA = {
  type: 'object',
  required: ['approved'],
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, editedArgs: { type: 'object' } },
}

const idOf = ({ subagentId, id }: CallKey): string => (subagentId === undefined ? id : `${subagentId}/${id}`)

function ofCall(
  event: Of<'tool_use' | 'tool_result' | 'tool_progress'>,
  subagentId: string | undefined,
  messageId: string,
): AgUiEvent[] {
  const toolCallId = idOf({ subagentId, id: event.id })
  if (event.type === 'tool_use')
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: event.tool_name },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(event.input) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  if (event.type === 'tool_result')
    return [{ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content: event.output, role: 'tool' }]
  const { progress, detail } = event
  return [{ type: 'CUSTOM', name: 'tool_progress', value: { toolCallId, progress, detail } }]
}

const custom = ({ type, ...value }: AgentEvent): AgUiEvent => ({ type: 'CUSTOM', name: type, value })

const resolved = ({ id, allow, how, reason, input }: Of<'permission_resolved'>): AgUiEvent[] => [
  { type: 'CUSTOM', name: 'permission_resolved', value: { id, allow, how, reason, ...(input && { input }) } },
]

const failed = ({ code, error, suggestion }: Pick<ErrorEvent, 'code' | 'error' | 'suggestion'>): AgUiEvent[] => [
  { type: 'RUN_ERROR', message: `${error}. ${suggestion}`, code },
]

export const AG_UI_WIRE = {
  render: (events: readonly AgUiEvent[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''),
  end: '',
}

import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, JsonObject, SubAgentEvent } from '../../../../shared/kernel/events.ts'
import { parseJson } from '../../../../shared/kernel/json.ts'
import { waitsForClient } from '../../../../shared/work/runs/open-asks.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { type CallKey, isQuestion, type OpenCalls, unwrapped, VOID_CALL } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import { artifactChunks, aside, failed, given } from './asides.ts'
import type { UiChunk } from './chunks.ts'

type Of<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>
type OfCall = Of<'tool_use' | 'tool_progress' | 'tool_result' | 'permission_request' | 'permission_resolved'>
type Block = 'text' | 'reasoning'

/** Makes the message of `useChat` from a run: one message for the run, whose id is the run's. */
export class UiProjection implements Projection<UiChunk> {
  readonly #messageId: string
  readonly #metadata: JsonObject
  readonly #basePath: string
  /** The calls whose latest permission request was denied. */
  readonly #denied = new Set<string>()
  /** The inputs that the calls have now. */
  readonly #inputs = new Map<string, JsonObject>()
  /** The requests that ask a question, not for a permission. */
  readonly #questions = new Set<string>()
  /** The calls that the page executes. Kept because a run that has recovered shows them again. */
  readonly #clientCalls = new Set<string>()
  /** The open block. */
  #open: { block: Block; id: string; sent: number } | undefined
  #blocks = 0
  #isInStep = false

  /** `basePath` begins the addresses of files. */
  constructor(runId: string, sessionId: string, basePath = '') {
    this.#basePath = basePath
    this.#messageId = runId
    this.#metadata = { runId, sessionId }
  }

  begin(): UiChunk[] {
    return [{ type: 'start', messageId: this.#messageId, messageMetadata: this.#metadata }]
  }

  take({ event }: Numbered<AgentEvent>, calls: OpenCalls): UiChunk[] {
    return [...this.#closeBefore(event), ...this.#closeVoid(calls), ...this.#chunksOf(event, calls)]
  }

  /** A page sends its next request by itself when each call has a result or an answer, so a call whose sub-agent waits gets a provisional result. */
  pause(calls: OpenCalls): UiChunk[] {
    const outputs = calls.carriers.map(
      (call): UiChunk => ({ type: 'tool-output-available', ...ofTool(call), output: WAITING }),
    )
    return [...outputs, { type: 'finish-step' }, { type: 'finish', finishReason: 'tool-calls' }]
  }

  cut(code: ReaderFailure): UiChunk[] {
    return failed(readerFailure(code))
  }

  #chunksOf(event: AgentEvent, calls: OpenCalls): UiChunk[] {
    switch (event.type) {
      case 'turn_start':
        this.#isInStep = true
        return [{ type: 'start-step' }]
      case 'artifact':
        return artifactChunks(event, this.#basePath)
      case 'steered':
        return [{ type: 'data-steered', id: event.id, data: given({ text: event.text, by: event.by }) }]
      case 'turn_end':
        return this.#endStep()
      case 'text_delta':
        return this.#delta('text', event.text)
      case 'thinking_delta':
        return this.#delta('reasoning', event.text)
      case 'text':
        return this.#whole('text', event.text)
      case 'thinking':
        return this.#whole('reasoning', event.text)
      case 'tool_use':
      case 'tool_progress':
      case 'tool_result':
        return this.#ofCall(event, undefined)
      case 'permission_request':
      case 'permission_resolved': {
        const call = calls.askedFor(event.id)
        return call?.subagentId === undefined ? this.#ofCall(event, undefined) : [] // A sub-agent's event has already come in a `subagent_event`.
      }
      case 'subagent_event':
        return this.#nested(event)
      case 'warning':
        return event.code === 'run_recovered' ? this.#recovered(event, calls) : aside(event)
      case 'subagent_start':
      case 'subagent_end':
      case 'plan_queued':
      case 'done':
      case 'error':
        return aside(event)
    }
  }

  #endStep(): UiChunk[] {
    if (!this.#isInStep) return []
    this.#isInStep = false
    return [{ type: 'finish-step' }]
  }

  /** A page keeps all parts that it has received. This part says which steps are void; the repeated turn is a further step. */
  #recovered({ code, message, detail }: Of<'warning'>, { beginsAnew }: OpenCalls): UiChunk[] {
    const data = { code, message, turnNumber: detail['turn_number'] }
    const ends = beginsAnew ? [...this.#close(), ...this.#endStep()] : []
    return [...ends, { type: 'data-warning', data }]
  }

  /** Ends the open block before an event that does not continue it, in case the event with its whole text never comes. */
  #closeBefore({ type }: AgentEvent): UiChunk[] {
    if (!this.#open || STREAMED.has(type) || ASIDE.has(type)) return []
    return this.#close()
  }

  #delta(block: Block, delta: string): UiChunk[] {
    if (this.#open?.block === block) {
      this.#open.sent += delta.length
      return [{ type: `${block}-delta`, id: this.#open.id, delta }]
    }
    const closed = this.#close()
    const id = `${block}-${++this.#blocks}`
    this.#open = { block, id, sent: delta.length }
    return [...closed, { type: `${block}-start`, id }, { type: `${block}-delta`, id, delta }]
  }

  /**
   * A record of a run keeps the whole blocks, without the pieces in which they came (D20). The last pieces of a block
   * may be missing, too (D32.7a).
   */
  #whole(block: Block, text: string): UiChunk[] {
    const rest = this.#open?.block === block ? text.slice(this.#open.sent) : text
    return [...(rest === '' ? [] : this.#delta(block, rest)), ...this.#close()]
  }

  #close(): UiChunk[] {
    if (!this.#open) return []
    const { block, id } = this.#open
    this.#open = undefined
    return [{ type: `${block}-end`, id }]
  }

  #ofCall(event: OfCall, subagentId: string | undefined): UiChunk[] {
    const id = 'tool_use_id' in event ? event.tool_use_id : event.id
    const tool = ofTool({ subagentId, id })
    const { toolCallId } = tool
    switch (event.type) {
      case 'tool_use':
        if (subagentId === undefined && waitsForClient(event)) return this.#clientCall(event)
        this.#denied.delete(toolCallId)
        this.#inputs.set(toolCallId, event.input)
        return [{ type: 'tool-input-available', ...tool, toolName: event.tool_name, input: event.input }]
      case 'tool_progress': {
        const { progress, detail } = event
        return [{ type: 'data-progress', data: { toolCallId, progress, detail }, transient: true }]
      }
      case 'permission_request':
        if (isQuestion(event)) this.#questions.add(event.id)
        else this.#inputs.set(toolCallId, event.input)
        return [requestOf(event, toolCallId)]
      case 'permission_resolved':
        return this.#answered(event, tool)
      case 'tool_result':
        return [this.#resultOf(event, this.#clientCalls.has(toolCallId) ? { toolCallId } : tool)]
    }
  }

  /** A page executes the calls of tools that are marked neither as dynamic nor as executed by the provider. */
  #clientCall({ id: toolCallId, tool_name: toolName, input }: Of<'tool_use'>): UiChunk[] {
    if (this.#clientCalls.has(toolCallId)) return []
    this.#clientCalls.add(toolCallId)
    return [{ type: 'tool-input-available', toolCallId, toolName, input }]
  }

  /** Ends the void calls: a call that is made again is a new part, in the step of the new turn. The page's own calls are left as they are. */
  #closeVoid({ voided: { calls, agents } }: OpenCalls): UiChunk[] {
    const own = calls.filter((call) => !this.#clientCalls.has(ofTool(call).toolCallId))
    return [
      ...own.map((call): UiChunk => ({ type: 'tool-output-error', ...ofTool(call), errorText: VOID_CALL })),
      ...agents.map((id): UiChunk => ({ type: 'data-subagent', id, data: { status: 'cancelled', error: VOID_CALL } })),
    ]
  }

  /**
   * The answer may have come from elsewhere. The input of a call that continues is sent again: the answer may have changed it, and the page stops
   * asking. After a question the call always continues. Version 6 of the package refuses unknown chunks, so the answer itself is a data part of our
   * own.
   */
  #answered(
    { id, allow, reason, tool_name: toolName, input }: Of<'permission_resolved'>,
    tool: ReturnType<typeof ofTool>,
  ): UiChunk[] {
    const { toolCallId } = tool
    const ofQuestion = this.#questions.has(id)
    const goesOn = allow || ofQuestion
    if (!goesOn) this.#denied.add(toolCallId)
    if (input && !ofQuestion) this.#inputs.set(toolCallId, input)
    const data = given({ toolCallId, approved: allow, reason: reason || undefined })
    const again = { type: 'tool-input-available', ...tool, toolName, input: this.#inputs.get(toolCallId) } as const
    return [...(goesOn ? [again] : []), { type: 'data-approval', id, data }]
  }

  #resultOf(
    { output, is_error: isError, how }: Of<'tool_result'>,
    tool: ReturnType<typeof ofTool> | { toolCallId: string },
  ): UiChunk {
    const { toolCallId } = tool
    if (this.#denied.has(toolCallId)) return { type: 'tool-output-denied', toolCallId }
    if (isError) return { type: 'tool-output-error', ...tool, errorText: output }
    return { type: 'tool-output-available', ...tool, output: how ? valueOf(output) : output }
  }

  #nested(wrapped: SubAgentEvent): UiChunk[] {
    const event = unwrapped(wrapped)
    const { subagent_id: subagentId } = wrapped
    if (OF_CALLS.has(event.type)) return this.#ofCall(event as OfCall, subagentId)
    if (event.type === 'warning') return aside(event as Of<'warning'>)
    const kind = KINDS[event.type]
    if (kind === undefined) return []
    return [{ type: 'data-subagent-delta', data: { subagentId, kind, delta: event['text'] }, transient: true }]
  }
}

const OF_CALLS: ReadonlySet<string> = new Set<OfCall['type']>([
  'tool_use',
  'tool_progress',
  'tool_result',
  'permission_request',
  'permission_resolved',
])
const KINDS: Record<string, Block> = { text_delta: 'text', thinking_delta: 'reasoning' }

function requestOf(request: Of<'permission_request'>, toolCallId: string): UiChunk {
  const { id, message, preview, expires_at: expiresAt } = request
  const approvalDescriptor = { message, expiresAt, ...(preview && { preview }) } // Version 6 of the package drops the reason.
  return { type: 'tool-approval-request', approvalId: id, toolCallId, reason: message, approvalDescriptor }
}

const WAITING = 'Its sub-agent waits for an approval.'

/** The page's answer as a value; the model has read it as text. */
function valueOf(output: string): unknown {
  const value = parseJson(output)
  return typeof value === 'object' && value !== null ? value : output
}

/** Events that may come within a block of text. */
const STREAMED: ReadonlySet<AgentEvent['type']> = new Set(['text_delta', 'thinking_delta', 'text', 'thinking'])
const ASIDE: ReadonlySet<AgentEvent['type']> = new Set(['warning', 'subagent_start', 'subagent_event', 'subagent_end'])

/** A sub-agent's calls have ids of their own, as another one may use the same. */
function ofTool({ subagentId, id }: CallKey) {
  const tool = { dynamic: true, providerExecuted: true } as const
  if (subagentId === undefined) return { toolCallId: id, ...tool }
  return { toolCallId: `${subagentId}/${id}`, ...tool, toolMetadata: { subagentId } }
}

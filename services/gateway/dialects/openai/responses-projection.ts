import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { waitsForClient } from '../../../../shared/work/runs/open-asks.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { isQuestion, type OpenCalls, unwrapped } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import { callIdOf } from './response-id.ts'
import { approvalRequest, callItems, functionCall } from './response-items.ts'
import { type ResponseEvent, ResponseOutput } from './response-output.ts'

type Of<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>
/** `isTyped`: its text is only the value that fits the client's schema. */
export type ResponseFacts = {
  id: string
  runId: string
  part: number
  created: number
  isTyped?: boolean
  echo: JsonObject
}

type Status = 'in_progress' | 'completed' | 'failed' | 'cancelled'
/** A call that is kept until it is shown with its result. */
type Call = { input: JsonObject; request?: string }

const RATE_LIMITED: ReadonlySet<string> = new Set(['provider_rate_limited', 'budget_exhausted', 'no_room'])

/** Makes a response of OpenAI's Responses API from a part of a run. */
export class ResponsesProjection implements Projection<ResponseEvent> {
  readonly #facts: ResponseFacts
  readonly #calls = new Map<string, Call>()
  readonly #questions = new Set<string>()
  /** The calls that the client executes. Kept because a run that has recovered shows them again. */
  readonly #clientCalls = new Set<string>()
  readonly #output = new ResponseOutput()
  #usage = { input: 0, output: 0, cached: 0 }
  #status: Status = 'in_progress'
  #error: JsonObject | null = null
  /** The error with which the run has failed. */
  failure: ErrorEvent | undefined

  constructor(facts: ResponseFacts) {
    this.#facts = facts
  }

  /** The response as it is now. */
  get response(): JsonObject {
    const { id, created, echo } = this.#facts
    const { input, output, cached } = this.#usage
    return {
      id,
      object: 'response',
      created_at: created,
      status: this.#status,
      error: this.#error,
      incomplete_details: null,
      instructions: null,
      metadata: {},
      output: this.#output.items,
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      previous_response_id: null,
      usage: {
        input_tokens: input,
        input_tokens_details: { cached_tokens: cached },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input + output,
      },
      ...echo,
    }
  }

  begin(): ResponseEvent[] {
    return [this.#whole('response.created'), this.#whole('response.in_progress')]
  }

  restart(): void {
    this.#output.restart()
    this.#usage = { input: 0, output: 0, cached: 0 }
  }

  take({ seq, event }: Numbered<AgentEvent>, calls: OpenCalls): ResponseEvent[] {
    const id = `${this.#facts.runId.slice('run_'.length)}_${seq}`
    switch (event.type) {
      case 'text_delta':
      case 'thinking_delta':
      case 'text':
      case 'thinking':
        return this.#said(event, id)
      case 'tool_use':
        return waitsForClient(event) ? this.#clientCall(event, id) : this.#begun(event)
      case 'permission_request':
      case 'permission_resolved': {
        const isOwn = calls.askedFor(event.id)?.subagentId === undefined
        return isOwn ? this.#ofPermission(event) : [] // A sub-agent's event has already come in a `subagent_event`.
      }
      case 'tool_result':
        return this.#clientCalls.has(event.id) ? [] : this.#result(event, id) // The client executed the call and knows its result.
      case 'subagent_event':
        return this.#nested(event)
      case 'artifact':
        return this.#output.bring(event.file_id, event.name)
      case 'turn_end':
        return this.#count(event)
      case 'plan_queued':
        return [...this.#output.delta('text', noteOf(event), id), ...this.#end('completed')]
      case 'done':
        return [...this.#typed(event, id), ...this.#end('completed')]
      case 'error':
        return this.#fail(event)
      case 'warning':
        return calls.beginsAnew ? this.#recovered() : []
      case 'turn_start':
      case 'steered':
      case 'tool_progress':
      case 'subagent_start':
      case 'subagent_end':
        return []
    }
  }

  pause(): ResponseEvent[] {
    return this.#end('completed')
  }

  cut(code: ReaderFailure): ResponseEvent[] {
    const { error } = readerFailure(code)
    return [this.#output.event('error', { code, message: error, param: null })]
  }

  #said({ type, text }: Of<'text_delta' | 'thinking_delta' | 'text' | 'thinking'>, id: string): ResponseEvent[] {
    const block = type === 'text' || type === 'text_delta' ? 'text' : 'thinking'
    if (block === 'text' && this.#facts.isTyped) return []
    return type === block ? this.#output.whole(block, text, id) : this.#output.delta(block, text, id)
  }

  #typed({ output }: Of<'done'>, id: string): ResponseEvent[] {
    return this.#facts.isTyped ? this.#output.whole('text', JSON.stringify(output), id) : []
  }

  #nested(wrapped: Of<'subagent_event'>): ResponseEvent[] {
    const event = unwrapped(wrapped)
    if (event.type !== 'permission_request') return []
    return this.#output.add(approvalRequest(event as Of<'permission_request'>))
  }

  /** A client keeps all items that it has received, so a repeated turn gets new ones. */
  #recovered(): ResponseEvent[] {
    this.#calls.clear()
    return this.#output.close()
  }

  #count({ input_tokens, output_tokens, cache_read_tokens = 0 }: Of<'turn_end'>): [] {
    const { input, output, cached } = this.#usage
    this.#usage = { input: input + input_tokens, output: output + output_tokens, cached: cached + cache_read_tokens }
    return []
  }

  #ofPermission(event: Of<'permission_request' | 'permission_resolved'>): ResponseEvent[] {
    const call = this.#calls.get(event.tool_use_id)
    if (event.type === 'permission_request') {
      if (isQuestion(event)) this.#questions.add(event.id)
      else if (call) call.request = event.id
      return this.#output.add(approvalRequest(event))
    }
    if (call && event.input && !this.#questions.has(event.id)) call.input = event.input
    return []
  }

  #clientCall({ id: toolUseId, tool_name: name, input }: Of<'tool_use'>, id: string): ResponseEvent[] {
    if (this.#clientCalls.has(toolUseId)) return []
    this.#clientCalls.add(toolUseId)
    return this.#output.addFunctionCall(functionCall({ id, callId: callIdOf(this.#facts, toolUseId), name, input }))
  }

  #begun({ id, input }: Of<'tool_use'>): [] {
    this.#calls.set(id, { input })
    return []
  }

  /** Shows a call only together with its result: an item that is open at a pause would belong to two responses. */
  #result({ id: callId, tool_name: toolName, output, is_error: isError }: Of<'tool_result'>, id: string) {
    const { input = {}, request } = this.#calls.get(callId) ?? {}
    this.#calls.delete(callId)
    return this.#output.addCall(...callItems({ id, toolName, input, request, output, isError }))
  }

  #end(status: Status): ResponseEvent[] {
    const closed = this.#output.close()
    this.#status = status
    return [...closed, this.#whole(status === 'completed' ? 'response.completed' : 'response.failed')]
  }

  #fail(failure: ErrorEvent): ResponseEvent[] {
    this.failure = failure
    const { code, error, suggestion } = failure
    const isCancelled = code === 'cancelled' || code === 'session_deleted'
    const known = RATE_LIMITED.has(code) ? 'rate_limit_exceeded' : 'server_error'
    this.#error = isCancelled ? null : { code: known, message: `${error} (${code}). ${suggestion}` }
    return this.#end(isCancelled ? 'cancelled' : 'failed')
  }

  #whole(type: string): ResponseEvent {
    return this.#output.event(type, { response: { ...this.response, output: [...this.#output.items] } })
  }
}

const noteOf = (event: Of<'plan_queued'>): string =>
  'plan_id' in event ? `The plan ${event.plan_id} was queued.` : event.note

import { type ReaderFailure, readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import type { AgentEvent, ErrorEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import type { Numbered } from '../../streams/run-events.ts'
import { type OpenCalls, unwrapped } from '../shared/open-calls.ts'
import type { Projection } from '../shared/projection.ts'
import { type Block, DELTAS, itemOf, type OpenBlock, PARTS, partAt, partOf } from './response-items.ts'

type Of<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>
export type ResponseEvent = JsonObject & { type: string; sequence_number: number }
export type ResponseFacts = { id: string; runId: string; created: number; echo: JsonObject }

type Status = 'in_progress' | 'completed' | 'failed' | 'cancelled'
/** A call that was made, until it is shown with its result. */
type Call = { toolName: string; input: JsonObject; request?: string }

/** Tools look like those of an MCP server, which the other side of this API calls by itself, too. */
const SERVER_LABEL = 'agent-engine'

/** Makes a response of OpenAI's Responses API from a part of a run. */
export class ResponsesProjection implements Projection<ResponseEvent> {
  readonly #facts: ResponseFacts
  readonly #calls = new Map<string, Call>()
  #output: JsonObject[] = []
  #sequence = 0
  #open: OpenBlock | undefined
  #usage = { input: 0, output: 0, cached: 0 }
  #status: Status = 'in_progress'
  #error: JsonObject | null = null

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
      output: this.#output,
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
    this.#output = []
    this.#sequence = FIRST
    this.#usage = { input: 0, output: 0, cached: 0 }
  }

  take({ seq, event }: Numbered<AgentEvent>, calls: OpenCalls): ResponseEvent[] {
    const id = `${this.#facts.runId.slice('run_'.length)}_${seq}`
    switch (event.type) {
      case 'text_delta':
      case 'thinking_delta':
        return this.#delta(event.type === 'text_delta' ? 'text' : 'thinking', event.text, id)
      case 'text':
      case 'thinking':
        return this.#wholeBlock(event.type, event.text, id)
      case 'tool_use':
        this.#calls.set(event.id, { toolName: event.tool_name, input: event.input })
        return []
      case 'permission_request':
        return calls.askedFor(event.id)?.subagentId === undefined ? this.#ask(event) : [] // It has come wrapped before.
      case 'permission_resolved':
        this.#resolve(event)
        return []
      case 'tool_result':
        return this.#result(event, id)
      case 'subagent_event':
        return this.#nested(event)
      case 'turn_end':
        this.#count(event)
        return []
      case 'plan_queued':
        return [...this.#delta('text', noteOf(event), id), ...this.#end('completed')]
      case 'done':
        return this.#end('completed')
      case 'error':
        return this.#fail(event)
      case 'turn_start':
      case 'tool_progress':
      case 'warning':
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
    return [this.#event('error', { code, message: error, param: null })]
  }

  #nested(wrapped: Of<'subagent_event'>): ResponseEvent[] {
    const event = unwrapped(wrapped)
    return event.type === 'permission_request' ? this.#ask(event as Of<'permission_request'>) : []
  }

  #count({ input_tokens, output_tokens, cache_read_tokens = 0 }: Of<'turn_end'>): void {
    const { input, output, cached } = this.#usage
    this.#usage = { input: input + input_tokens, output: output + output_tokens, cached: cached + cache_read_tokens }
  }

  /** A record of a run keeps the whole blocks, without the pieces in which they came (D20). */
  #wholeBlock(block: Block, text: string, id: string): ResponseEvent[] {
    const rest = this.#open || text === '' ? [] : this.#delta(block, text, id)
    return [...rest, ...this.#close()]
  }

  #delta(block: Block, delta: string, id: string): ResponseEvent[] {
    const opened = this.#open?.block === block ? [] : [...this.#close(), ...this.#begin(block, id)]
    if (!this.#open) return opened
    this.#open.text += delta
    const { id: item_id, index: output_index } = this.#open
    const at =
      block === 'text'
        ? { item_id, output_index, content_index: 0, logprobs: [] }
        : { item_id, output_index, summary_index: 0 }
    return [...opened, this.#event(`${DELTAS[block]}.delta`, { ...at, delta })]
  }

  #begin(block: Block, id: string): ResponseEvent[] {
    const open = { block, id: `${block === 'text' ? 'msg' : 'rs'}_${id}`, index: this.#output.length, text: '' }
    this.#open = open
    const item = itemOf({ ...open, status: 'in_progress', parts: [] })
    this.#output.push(item)
    const [at, part] = [partAt(open), partOf(open)]
    return [
      this.#event('response.output_item.added', { output_index: open.index, item }),
      this.#event(`${PARTS[block]}.added`, { ...at, part }),
    ]
  }

  #close(): ResponseEvent[] {
    const open = this.#open
    if (!open) return []
    this.#open = undefined
    const { block, index: output_index, text } = open
    const item = itemOf({ ...open, status: 'completed', parts: [partOf(open)] })
    this.#output[output_index] = item
    const at = partAt(open)
    return [
      this.#event(`${DELTAS[block]}.done`, { ...at, text, ...(block === 'text' && { logprobs: [] }) }),
      this.#event(`${PARTS[block]}.done`, { ...at, part: partOf(open) }),
      this.#event('response.output_item.done', { output_index, item }),
    ]
  }

  #ask({ id, tool_use_id: callId, tool_name: name, input }: Of<'permission_request'>): ResponseEvent[] {
    const call = this.#calls.get(callId)
    if (call) call.request = id
    return this.#item({
      id,
      type: 'mcp_approval_request',
      name,
      arguments: JSON.stringify(input),
      server_label: SERVER_LABEL,
    })
  }

  #resolve({ tool_use_id: callId, input }: Of<'permission_resolved'>): void {
    const call = this.#calls.get(callId)
    if (call && input) call.input = input
  }

  /** A call is shown when it has its result: what is open at a pause would belong to two responses. */
  #result({ id: callId, tool_name: name, output, is_error: isError }: Of<'tool_result'>, id: string): ResponseEvent[] {
    const { input = {}, request } = this.#calls.get(callId) ?? {}
    this.#calls.delete(callId)
    const [index, item_id, text] = [this.#output.length, `mcp_${id}`, JSON.stringify(input)]
    const item = {
      ...{ id: item_id, type: 'mcp_call', name, arguments: text, server_label: SERVER_LABEL },
      ...{ approval_request_id: request ?? null, output: null, error: null, status: 'in_progress' },
    }
    const ended = isError
      ? {
          ...item,
          status: 'failed',
          error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: output }] },
        }
      : { ...item, status: 'completed', output }
    this.#output.push(ended)
    const at = { item_id, output_index: index }
    return [
      this.#event('response.output_item.added', { output_index: index, item }),
      this.#event('response.mcp_call.in_progress', at),
      this.#event('response.mcp_call_arguments.done', { ...at, arguments: text }),
      this.#event(`response.mcp_call.${isError ? 'failed' : 'completed'}`, at),
      this.#event('response.output_item.done', { output_index: index, item: ended }),
    ]
  }

  #item(item: JsonObject): ResponseEvent[] {
    const output_index = this.#output.push(item) - 1
    return ['added', 'done'].map((what) => this.#event(`response.output_item.${what}`, { output_index, item }))
  }

  #end(status: Status): ResponseEvent[] {
    const closed = this.#close()
    this.#status = status
    return [...closed, this.#whole(status === 'completed' ? 'response.completed' : 'response.failed')]
  }

  #fail({ code, error, suggestion }: ErrorEvent): ResponseEvent[] {
    const isCancelled = code === 'cancelled' || code === 'session_deleted'
    const known =
      code === 'provider_rate_limited' || code === 'budget_exhausted' ? 'rate_limit_exceeded' : 'server_error'
    this.#error = isCancelled ? null : { code: known, message: `${error} (${code}). ${suggestion}` }
    return this.#end(isCancelled ? 'cancelled' : 'failed')
  }

  #whole(type: string): ResponseEvent {
    return this.#event(type, { response: { ...this.response, output: [...this.#output] } })
  }

  #event(type: string, fields: JsonObject): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields }
  }
}

const noteOf = (event: Of<'plan_queued'>): string =>
  'plan_id' in event ? `The plan ${event.plan_id} was queued.` : event.note

/** The number of the first event behind those that begin a response. */
const FIRST = 2

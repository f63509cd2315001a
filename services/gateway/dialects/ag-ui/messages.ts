import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { waitsForClient } from '../../../../shared/work/runs/open-asks.ts'
import { type AgUiEvent, callId, type Of } from './events.ts'

const TYPES = [
  ...(['turn_start', 'turn_end', 'text_delta', 'text', 'thinking_delta', 'thinking'] as const),
  ...(['tool_use', 'tool_result', 'tool_progress'] as const),
]
const OF_MESSAGES: ReadonlySet<string> = new Set(TYPES)

/** An event of the run itself or of a sub-agent that concerns its messages. */
export type MessageEvent = Of<(typeof TYPES)[number]>

export const isOfMessages = (event: { type: string }): event is MessageEvent => OF_MESSAGES.has(event.type)

type Block = 'text' | 'thinking'

/** The steps, texts, thoughts and calls of the run itself or of one of its sub-agents. */
export class AgUiMessages {
  readonly #subagentId: string | undefined
  readonly #owner: JsonObject
  /** The calls that the client executes. Kept because a run that has recovered shows them again. */
  readonly #clientCalls = new Set<string>()
  #open: { block: Block; id: string; sent: number } | undefined
  #step: string | undefined

  /** With `isNamed`, each event names the sub-agent. */
  constructor({ subagentId, isNamed = false }: { subagentId?: string; isNamed?: boolean } = {}) {
    this.#subagentId = subagentId
    this.#owner = isNamed ? { subagentRunId: subagentId } : {}
  }

  /** Returns AG-UI's events for one event of the run; a message that begins here gets `id`. */
  take(event: MessageEvent, id: string): AgUiEvent[] {
    switch (event.type) {
      case 'turn_start':
        this.#step = `turn-${event.turn_number}`
        return [this.#event('STEP_STARTED', { stepName: this.#step })]
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
        return waitsForClient(event) && this.#isKnown(event.id) ? [] : this.#call(event, id)
      case 'tool_result': // A client already has its own answer.
        return this.#clientCalls.has(event.id) && event.how === 'reply' ? [] : [this.#result(event, id)]
      case 'tool_progress':
        return [this.#progress(event)]
    }
  }

  /** Whether an earlier message of the client already contained this call. */
  #isKnown(id: string): boolean {
    const isKnown = this.#clientCalls.has(id)
    this.#clientCalls.add(id)
    return isKnown
  }

  /** Ends the block and the step that are open. */
  end(): AgUiEvent[] {
    return [...this.#close(), ...this.#endStep()]
  }

  /** Forgets the open step and block: they began in an earlier response. */
  restart(): void {
    this.#step = undefined
    this.#open = undefined
  }

  #event(type: string, fields: JsonObject): AgUiEvent {
    return { type, ...this.#owner, ...fields }
  }

  #delta(block: Block, delta: string, id: string): AgUiEvent[] {
    const opened = this.#open?.block === block ? [] : [...this.#close(), ...this.#begin(block, id)]
    if (this.#open) this.#open.sent += delta.length
    const type = block === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
    return delta === '' ? opened : [...opened, this.#event(type, { messageId: this.#open?.id, delta })]
  }

  #begin(block: Block, messageId: string): AgUiEvent[] {
    this.#open = { block, id: messageId, sent: 0 }
    if (block === 'text') return [this.#event('TEXT_MESSAGE_START', { messageId, role: 'assistant' })]
    return [
      this.#event('REASONING_START', { messageId }),
      this.#event('REASONING_MESSAGE_START', { messageId, role: 'reasoning' }),
    ]
  }

  /**
   * A record of a run keeps the whole blocks, without the pieces in which they came (D20). The last pieces of a block
   * may be missing, too (D32.7a).
   */
  #whole(block: Block, text: string, id: string): AgUiEvent[] {
    const rest = this.#open?.block === block ? text.slice(this.#open.sent) : text
    return [...(rest === '' ? [] : this.#delta(block, rest, id)), ...this.#close()]
  }

  #close(): AgUiEvent[] {
    if (!this.#open) return []
    const { block, id: messageId } = this.#open
    this.#open = undefined
    if (block === 'text') return [this.#event('TEXT_MESSAGE_END', { messageId })]
    return [this.#event('REASONING_MESSAGE_END', { messageId }), this.#event('REASONING_END', { messageId })]
  }

  #endStep(): AgUiEvent[] {
    const stepName = this.#step
    this.#step = undefined
    return stepName === undefined ? [] : [this.#event('STEP_FINISHED', { stepName })]
  }

  /**
   * The message of a call has an id that begins with its run's id. A client that writes a new message instead of answering is
   * placed in the thread by that id (D38.1a).
   */
  #call({ id, tool_name: toolCallName, input }: Of<'tool_use'>, parentMessageId: string): AgUiEvent[] {
    const toolCallId = this.#idOf(id)
    return [
      this.#event('TOOL_CALL_START', { toolCallId, toolCallName, parentMessageId }),
      this.#event('TOOL_CALL_ARGS', { toolCallId, delta: JSON.stringify(input) }),
      this.#event('TOOL_CALL_END', { toolCallId }),
    ]
  }

  #result({ id, output }: Of<'tool_result'>, messageId: string): AgUiEvent {
    return this.#event('TOOL_CALL_RESULT', { messageId, toolCallId: this.#idOf(id), content: output, role: 'tool' })
  }

  #progress({ id, progress, detail }: Of<'tool_progress'>): AgUiEvent {
    const value = { toolCallId: this.#idOf(id), progress, detail }
    return this.#event('CUSTOM', { name: 'tool_progress', value })
  }

  #idOf(id: string): string {
    return callId({ subagentId: this.#subagentId, id })
  }
}

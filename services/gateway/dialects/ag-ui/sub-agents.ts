import { unwrapped } from '../shared/open-calls.ts'
import { type AgUiEvent, custom, type Of } from './events.ts'
import { AgUiMessages, isOfMessages } from './messages.ts'

type OfSubAgent = Of<'subagent_start' | 'subagent_event' | 'subagent_end'>

/** How the sub-agents of a run are shown to a client. */
export interface SubAgents {
  /** Returns AG-UI's events for one event; a message that begins here gets `id`. */
  take(event: OfSubAgent, id: string): AgUiEvent[]
  /** Ends the sub-agents' part of a response at a pause. `interruptsOf` returns the ids of a sub-agent's interrupts. */
  suspend(interruptsOf: (subagentId: string) => string[] | undefined): AgUiEvent[]
  /** Ends the sub-agents with the run, or with their turn when that is repeated. */
  end(): AgUiEvent[]
  /** Forgets what earlier responses have shown. */
  restart(): void
}

type Running = { start: Of<'subagent_start'>; messages: AgUiMessages; isShown: boolean }

/** The events that version 1.0 of AG-UI has for sub-agents: their messages and calls name them. */
export class NamedSubAgents implements SubAgents {
  readonly #running = new Map<string, Running>()

  take(event: OfSubAgent, id: string): AgUiEvent[] {
    const { subagent_id: subagentId } = event
    if (event.type === 'subagent_start') {
      const messages = new AgUiMessages({ subagentId, isNamed: true })
      this.#running.set(subagentId, { start: event, messages, isShown: false })
      return this.#show(subagentId)
    }
    if (event.type === 'subagent_end') return this.#finish(event)
    const shown = this.#show(subagentId)
    const inner = unwrapped(event)
    if (!isOfMessages(inner)) return shown
    return [...shown, ...(this.#running.get(subagentId)?.messages.take(inner, id) ?? [])]
  }

  suspend(interruptsOf: (subagentId: string) => string[] | undefined): AgUiEvent[] {
    return this.#endShown((subagentRunId) => {
      const interruptIds = interruptsOf(subagentRunId)
      const outcome = { type: 'suspended', ...(interruptIds && { interruptIds }) }
      return { type: 'SUBAGENT_FINISHED', subagentRunId, outcome }
    })
  }

  end(): AgUiEvent[] {
    const message = 'The run has ended.'
    const last = (subagentRunId: string) => ({ type: 'SUBAGENT_ERROR', subagentRunId, message, code: 'cancelled' })
    const ended = this.#endShown(last)
    this.#running.clear()
    return ended
  }

  restart(): void {
    for (const running of this.#running.values()) {
      running.isShown = false
      running.messages.restart()
    }
  }

  /** Announces a sub-agent that continues in another response again, after its parent. */
  #show(id: string): AgUiEvent[] {
    const running = this.#running.get(id)
    if (!running || running.isShown) return []
    running.isShown = true
    const { parent_subagent_id: parent, description } = running.start
    const above = parent === undefined ? [] : this.#show(parent)
    const of = { ...(parent !== undefined && { parentSubagentRunId: parent }), ...(description && { description }) }
    return [...above, { type: 'SUBAGENT_STARTED', subagentRunId: id, name: NAME, ...of }]
  }

  #finish({ subagent_id: subagentRunId, status, result, error }: Of<'subagent_end'>): AgUiEvent[] {
    const begun = [...this.#show(subagentRunId), ...(this.#running.get(subagentRunId)?.messages.end() ?? [])]
    this.#running.delete(subagentRunId)
    if (status === 'completed') return [...begun, { type: 'SUBAGENT_FINISHED', subagentRunId, result }]
    return [...begun, { type: 'SUBAGENT_ERROR', subagentRunId, message: error ?? result, code: status }]
  }

  /** Ends the children of a sub-agent before the sub-agent itself. */
  #endShown(last: (id: string) => AgUiEvent): AgUiEvent[] {
    const shown = [...this.#running].filter(([, { isShown }]) => isShown).toReversed()
    return shown.flatMap(([id, { messages }]) => [...messages.end(), last(id)])
  }
}

/** Sub-agents have no names of their own; this is the tool that starts them. */
const NAME = 'Agent'

/** For clients of earlier versions, which refuse unknown events: calls do not name their sub-agent, and the rest are sent as custom events. */
export class CustomSubAgents implements SubAgents {
  take(event: OfSubAgent, id: string): AgUiEvent[] {
    if (event.type !== 'subagent_event') return [custom(event)]
    const inner = unwrapped(event)
    if (inner.type === 'text_delta' || inner.type === 'thinking_delta') return [custom(event)]
    if (!isOfMessages(inner) || !OF_CALLS.has(inner.type)) return []
    return new AgUiMessages({ subagentId: event.subagent_id }).take(inner, id)
  }

  suspend(): AgUiEvent[] {
    return []
  }

  end(): AgUiEvent[] {
    return []
  }

  restart(): void {}
}

const OF_CALLS: ReadonlySet<string> = new Set(['tool_use', 'tool_result', 'tool_progress'])

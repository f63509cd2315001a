import type { AgentEvent, RunEvent, SubAgentEvent } from '../../kernel/events.ts'

type Request = Extract<AgentEvent, { type: 'permission_request' }>
/** `wrapped`: the same request as an event of the sub-agent that has made it. */
type Asked = { request?: Request; wrapped?: SubAgentEvent }

/** The permission requests of one run that are not resolved: those that its events show, and the decisions that it waits for. */
export class OpenAsks {
  readonly #asked = new Map<string, Asked>()
  readonly #waiting = new Set<Promise<unknown>>()

  /** The ids of the requests that are open. */
  get ids(): string[] {
    return [...this.#asked.keys()]
  }

  /** Call it with each event of the run. */
  note(event: RunEvent): void {
    if (event.type === 'permission_request') this.#asked.set(event.id, { ...this.#asked.get(event.id), request: event })
    else if (event.type === 'permission_resolved') this.#asked.delete(event.id)
    else if (event.type === 'subagent_event' && event.event_type === 'permission_request')
      this.#asked.set(String(event['id']), { wrapped: event })
  }

  /** Returns the events that resolve those that are open: those of a sub-agent are wrapped, and then plain (D4.13). */
  take(): RunEvent[] {
    const open = [...this.#asked.values()]
    this.#asked.clear()
    return open.flatMap(cancelled)
  }

  async waitFor<T>(decision: Promise<T>): Promise<T> {
    this.#waiting.add(decision)
    return decision.finally(() => this.#waiting.delete(decision))
  }

  /** Resolves when no decision is waited for. */
  async decided(): Promise<void> {
    await Promise.allSettled(this.#waiting)
  }
}

function cancelled({ request, wrapped }: Asked): RunEvent[] {
  if (!request) return []
  const { id, tool_use_id, tool_name } = request
  const fields = { id, tool_use_id, tool_name, allow: false, how: 'cancelled', reason: '' } as const
  const plain: RunEvent = { type: 'permission_resolved', ...fields }
  if (!wrapped) return [plain]
  const { subagent_id, parent_subagent_id } = wrapped
  const parentage = { subagent_id, ...(parent_subagent_id !== undefined && { parent_subagent_id }) }
  return [{ type: 'subagent_event', ...parentage, event_type: 'permission_resolved', ...fields }, plain]
}

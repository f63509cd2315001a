import type { AgentEvent, RunEvent, SubAgentEvent } from '../../kernel/events.ts'

type Request = Extract<AgentEvent, { type: 'permission_request' }>
/** `wrapped`: the same request inside the event of the sub-agent that made it. */
type Asked = { request?: Request; wrapped?: SubAgentEvent }

type ClientCall = Extract<AgentEvent, { type: 'tool_use' }> & { expires_at: string }

/** Whether the run waits for its client to execute this call. */
export const waitsForClient = (event: RunEvent): event is ClientCall =>
  event.type === 'tool_use' && event.expires_at !== undefined

/**
 * The permission requests of one run that are not resolved, and the client calls without an answer. Both come from the events of the run and
 * from the decisions that it waits for.
 */
export class OpenAsks {
  readonly #asked = new Map<string, Asked>()
  readonly #calls = new Map<string, ClientCall>()
  readonly #waiting = new Set<Promise<unknown>>()
  #superseded: AbortController | undefined = undefined

  /** The ids of the requests that are open. */
  get ids(): string[] {
    return [...this.#asked.keys()]
  }

  /** The ids of the calls that the client must execute and has not answered. */
  get calls(): string[] {
    return [...this.#calls.keys()]
  }

  /** Aborted when a later message of the session denies all requests of the run, including later ones (D39.1). */
  get superseded(): AbortSignal {
    this.#superseded ??= new AbortController()
    return this.#superseded.signal
  }

  supersede(): void {
    this.#superseded ??= new AbortController()
    this.#superseded.abort()
  }

  /** Call it with each event of the run. */
  note(event: RunEvent): void {
    if (waitsForClient(event)) this.#calls.set(event.id, event)
    else if (event.type === 'tool_result') this.#calls.delete(event.id)
    else if (event.type === 'permission_request')
      this.#asked.set(event.id, { ...this.#asked.get(event.id), request: event })
    else if (event.type === 'permission_resolved') this.#asked.delete(event.id)
    else if (event.type === 'subagent_event' && event.event_type === 'permission_request')
      this.#asked.set(String(event['id']), { wrapped: event })
  }

  /** Returns the events that resolve all open requests. A request of a sub-agent gets two events: a wrapped one, then a plain one (D4.13). */
  take(): RunEvent[] {
    const open = [...this.#asked.values()]
    const calls = [...this.#calls.values()]
    this.#asked.clear()
    this.#calls.clear()
    return [...open.flatMap(cancelled), ...calls.map(unanswered)]
  }

  async waitFor<T>(decision: Promise<T>): Promise<T> {
    this.#waiting.add(decision)
    return decision.finally(() => this.#waiting.delete(decision))
  }

  /** Resolves when the run waits for no decision. */
  async decided(): Promise<void> {
    await Promise.allSettled(this.#waiting)
  }
}

/** The result of a call that the client has not answered when the run ends. */
export const unanswered = ({ id, tool_name }: Pick<ClientCall, 'id' | 'tool_name'>): RunEvent => ({
  type: 'tool_result',
  id,
  tool_name,
  output: 'The run has ended.',
  is_error: true,
  how: 'cancelled',
})

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

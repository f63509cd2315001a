import type { AgentEvent } from '../../kernel/events.ts'
import { EventQueue } from './event-queue.ts'

/**
 * The events of a turn's tool calls. After an abort only the decisions of open permission requests and the results of the client's calls follow, so
 * that each is resolved before the run ends (D37.1); then the events end.
 */
export class StepEvents extends EventQueue<AgentEvent> {
  /** The ids of open permission requests. They include those of sub-agents, whose requests come once more as plain events (D4.13). */
  readonly #asks = new Set<string>()
  readonly #clientCalls: Set<string>
  #isAborted = false

  constructor(maxItems: number, clientCalls: Iterable<string>) {
    super(maxItems)
    this.#clientCalls = new Set(clientCalls)
  }

  override push(event: AgentEvent): void {
    if (this.#isAborted && !this.#isDecision(event)) return
    if (event.type === 'permission_request') this.#asks.add(event.id)
    super.push(event)
    if (event.type === 'permission_resolved') this.#asks.delete(event.id)
    if (event.type === 'tool_result') this.#clientCalls.delete(event.id)
    if (this.#isAborted) this.#closeIfDecided()
  }

  /** Called when the run is aborted: later events of its calls are dropped. */
  abort(): void {
    this.#isAborted = true
    this.#closeIfDecided()
  }

  #closeIfDecided(): void {
    if (this.#asks.size + this.#clientCalls.size === 0) this.close()
  }

  #isDecision(event: AgentEvent): boolean {
    if (event.type === 'tool_result') return this.#clientCalls.has(event.id)
    const type = event.type === 'subagent_event' ? event.event_type : event.type
    return type === 'permission_resolved' && 'id' in event && this.#asks.has(String(event.id))
  }
}

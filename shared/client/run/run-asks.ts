import type { RunEvent } from '../api.ts'
import type { Transport } from '../http/transport.ts'
import { PermissionAsk } from './permission-ask.ts'

/** The permission requests of one run that are pending, also those of its sub-agents. */
export class RunAsks {
  readonly #transport: Transport
  readonly #sessionOf: (runId: string) => Promise<string>
  readonly #asks = new Map<string, PermissionAsk>()
  readonly #subagents = new Map<string, string>()

  constructor(transport: Transport, sessionOf: ((runId: string) => Promise<string>) | undefined) {
    this.#transport = transport
    this.#sessionOf = sessionOf ?? (async (runId) => runId)
  }

  /** Takes an event, and returns the request that it begins. */
  take({ event, data }: RunEvent, runId: string): PermissionAsk | undefined {
    // A sub-agent's request comes twice: first wrapped, then plain.
    if (event === 'subagent_event' && data.event_type === 'permission_request')
      this.#subagents.set(data.id, data.subagent_id)
    if (event === 'permission_resolved') {
      this.#asks.get(data.id)?.settle(data)
      this.#asks.delete(data.id)
    }
    if (event !== 'permission_request') return undefined
    const sessionId = () => this.#sessionOf(runId)
    const origin = { transport: this.#transport, runId, sessionId, subagentId: this.#subagents.get(data.id) }
    const ask = new PermissionAsk(data, origin)
    this.#asks.set(data.id, ask)
    return ask
  }

  /** Called when the run has ended. */
  close(): void {
    for (const ask of this.#asks.values()) ask.settle({ how: 'ended' })
    this.#asks.clear()
  }
}

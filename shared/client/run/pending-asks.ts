import type { RunEvent } from '../api.ts'
import { PermissionAsk, type PermissionOrigin, type PermissionRequest, type Resolution } from './permission-ask.ts'

/** Permission requests that nobody has decided, as far as is known, by their ids. */
export class PendingAsks extends Map<string, PermissionAsk> {
  readonly #subagents = new Map<string, string>()
  /** The ids of all requests of the run so far. One comes again when another server goes on with it. */
  readonly #begun = new Set<string>()

  /** Takes an event of a run, and returns the request that it begins. */
  take({ event, data }: RunEvent, origin: PermissionOrigin): PermissionAsk | undefined {
    // A sub-agent's request comes twice: first wrapped, then plain.
    if (event === 'subagent_event' && data.event_type === 'permission_request')
      this.#subagents.set(data.id, data.subagent_id)
    if (event === 'permission_resolved') this.settle(data, ({ id }) => id === data.id)
    if (event !== 'permission_request' || this.#begun.has(data.id)) return undefined
    this.#begun.add(data.id)
    return this.begin(data, { ...origin, subagentId: this.#subagents.get(data.id) })
  }

  begin(request: PermissionRequest, origin: PermissionOrigin): PermissionAsk {
    const ask = new PermissionAsk(request, origin)
    this.set(ask.id, ask)
    return ask
  }

  /** Tells those that are meant how they were decided. */
  settle(resolution: Resolution, isMeant: (ask: PermissionAsk) => boolean = () => true): void {
    for (const [id, ask] of this) if (isMeant(ask) && this.delete(id)) ask.settle(resolution)
  }
}

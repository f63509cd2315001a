import type { RunEvent } from '../api.ts'
import {
  createAsk,
  type PermissionAsk,
  type PermissionOrigin,
  type PermissionRequest,
  type Resolution,
} from './permission-ask.ts'

/** Permission requests without a known decision, by their ids. */
export class PendingAsks extends Map<string, PermissionAsk> {
  readonly #origin: PermissionOrigin
  /** The ids of all requests of the run so far. A request comes again when another server continues the run. */
  readonly #begun = new Set<string>()

  constructor(origin: PermissionOrigin) {
    super()
    this.#origin = origin
  }

  /** Takes an event of a run, and returns the request that it begins. */
  take({ event, data }: RunEvent, runId: string): PermissionAsk | undefined {
    if (event === 'permission_resolved') this.settle(data, ({ id }) => id === data.id)
    // A sub-agent's request comes twice: first wrapped, then plain.
    const request = data as PermissionRequest & { event_type?: string }
    const { id, event_type: type = event } = request
    if (type !== 'permission_request' || this.#begun.has(id)) return undefined
    this.#begun.add(id)
    return this.begin(request, runId)
  }

  begin(request: PermissionRequest, runId: string): PermissionAsk {
    const ask = createAsk(request, runId, this.#origin)
    this.set(ask.id, ask)
    return ask
  }

  /** Settles the requests for which `isMeant` is true. */
  settle(resolution: Resolution, isMeant: (ask: PermissionAsk) => boolean = () => true): void {
    for (const [id, ask] of this) if (isMeant(ask) && this.delete(id)) ask.settle(resolution)
  }
}

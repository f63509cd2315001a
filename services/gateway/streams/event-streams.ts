import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { type EventQuery, EventStream } from '../../../shared/tenancy/events/event-stream.ts'
import type { EventLog } from '../../../shared/tenancy/events/port.ts'
import { LiveItems } from '../../http/live-items.ts'

/** The open streams of `GET /events` of this process. They have no end of their own, so the process ends them when it stops. */
export class EventStreams {
  readonly #log: EventLog
  readonly #open = new LiveItems<EventStream>()

  constructor(log: EventLog) {
    this.#log = log
  }

  /** Throws `unavailable` when the log cannot be read. */
  async open(tenant: TenantId, query: EventQuery): Promise<EventStream> {
    const watch = await this.#log.watch(tenant)
    const stream: EventStream = new EventStream(watch, query, () => place.leave())
    const place = this.#open.add(stream)
    return stream
  }

  /** Their readers reconnect to another process, each after its last event. */
  endAll(): void {
    for (const stream of this.#open) void stream.return()
  }
}

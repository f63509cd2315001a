import { LRUCache } from 'lru-cache'
import type { TenantId } from '../../kernel/tenant.ts'
import { loggedEvent, storedText } from './event-text.ts'
import { type EventLog, type EventWatch, KEPT_EVENTS, type TenantEvent } from './port.ts'
import { RecentEvents } from './recent-events.ts'

/** Beyond this number, the log whose last event is the oldest is dropped; its tenant starts a new log with its next event. */
const MAX_TENANTS = 1_000

/** The logs of a process that is alone. They end with it: the numbers after a restart belong to a later generation. */
export class MemoryEventLog implements EventLog {
  #nextGeneration: number
  readonly #logs = new LRUCache<TenantId, RecentEvents>({ max: MAX_TENANTS })
  readonly #listeners = new Map<TenantId, Set<() => void>>()

  constructor(startedAt = Date.now()) {
    this.#nextGeneration = startedAt
  }

  append(tenant: TenantId, event: TenantEvent): void {
    const log = this.#of(tenant)
    const { generation, n } = log.end
    log.add(loggedEvent({ generation, n: n + 1 }, storedText(event)))
    for (const listener of this.#listeners.get(tenant) ?? []) listener()
  }

  async watch(tenant: TenantId): Promise<EventWatch> {
    const log = () => this.#of(tenant)
    let leave = () => {}
    return {
      end: log().end,
      get newest() {
        return log().end
      },
      read: async (after) => log().after(after),
      subscribe: (listener) => {
        leave = this.#subscribe(tenant, listener)
      },
      close: () => leave(),
    }
  }

  #subscribe(tenant: TenantId, listener: () => void): () => void {
    const listeners = this.#listeners.get(tenant) ?? new Set()
    this.#listeners.set(tenant, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(tenant)
    }
  }

  #of(tenant: TenantId): RecentEvents {
    const known = this.#logs.get(tenant)
    if (known) return known
    const log = new RecentEvents(KEPT_EVENTS, { generation: this.#nextGeneration++, n: 0 })
    this.#logs.set(tenant, log)
    return log
  }
}

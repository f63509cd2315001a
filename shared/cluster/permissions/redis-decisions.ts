import type { TenantId } from '../../kernel/tenant.ts'
import type { RedisLink } from '../../platform/redis/link.ts'
import { PENDING, READ } from './redis-scripts.ts'
import type { PermissionDecision, PermissionKey } from './store.ts'

/**
 * A request as the first key holds it. `bell` is the channel on which its worker is notified of the decision: releases
 * that run together must agree on the name.
 */
export type Entry = { runId: string; bell: string; decided?: PermissionDecision }

/** How often a worker reads which of its requests are decided: Redis may lose the message that announces a decision. */
const POLL_MS = 500

const WITHDRAWN = { state: 'withdrawn' } as const

type Waiting = { tenant: TenantId; read: () => void }

export type DecisionKeys = { entries(tenant: TenantId, scopeId: string): string; asks(tenant: TenantId): string }

/** The requests of one worker that wait for their decision. One poll reads all requests of a tenant together. */
export class Decisions {
  readonly #link: Pick<RedisLink, 'run'>
  readonly #keys: DecisionKeys
  readonly #waiting = new Map<string, Waiting>()
  #timer: NodeJS.Timeout | undefined

  constructor(link: Pick<RedisLink, 'run'>, keys: DecisionKeys) {
    this.#link = link
    this.#keys = keys
  }

  /** Handles the announcement that a request was decided. */
  onAnnounced(id: string): void {
    this.#waiting.get(id)?.read()
  }

  /** Resolves with the decision; a request that Redis no longer has is withdrawn. When `signal` is aborted it is no longer read. */
  async of({ tenant, scopeId, id }: PermissionKey, signal?: AbortSignal): Promise<PermissionDecision> {
    const { promise, resolve } = Promise.withResolvers<PermissionDecision>()
    const read = async () => {
      const found = await this.#link.run(READ, [this.#keys.entries(tenant, scopeId)], [id])
      const decided = typeof found === 'string' ? (JSON.parse(found) as Entry).decided : WITHDRAWN
      if (decided) resolve(decided)
    }
    const tryToRead = () => {
      read().catch(() => {}) // Redis is unreachable: the next poll finds the decision.
    }
    const waiting = { tenant, read: tryToRead }
    const remove = () => this.#remove(id, waiting)
    this.#waiting.set(id, waiting)
    this.#timer ??= setInterval(this.#poll, POLL_MS)
    signal?.addEventListener('abort', remove, { once: true })
    tryToRead()
    return promise.finally(remove)
  }

  /** The run may have returned to this worker, and wait for the same request again. */
  #remove(id: string, waiting: Waiting): void {
    if (this.#waiting.get(id) === waiting) this.#waiting.delete(id)
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  readonly #poll = (): void => {
    const byTenant = Map.groupBy(this.#waiting.keys(), (id) => this.#waiting.get(id)?.tenant)
    for (const [tenant, ids] of byTenant) if (tenant !== undefined) this.#readDecided(tenant, ids).catch(() => {}) // As above.
  }

  /** Reads the requests that are not pending any more. */
  async #readDecided(tenant: TenantId, ids: readonly string[]): Promise<void> {
    const pending = new Set((await this.#link.run(PENDING, [this.#keys.asks(tenant)], ids)) as string[])
    for (const id of ids) if (!pending.has(id)) this.#waiting.get(id)?.read()
  }
}

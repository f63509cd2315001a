import { SYSTEM_TENANT, type TenantId } from '../../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store } from '../../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../../platform/store/replace.ts'

/** The pools of all tenants that have calls. They are stored under no tenant, so that a process finds those of all tenants. */
export const OPEN_POOLS: CollectionSpec = {
  name: 'open_pools',
  key: ['owner', 'pool'],
  order: { within: [], by: ['due_ms', 'owner', 'pool'], direction: 'ascending' },
}

/** The calls of a tenant to one model of an instance. `due_ms`: when a process must look at it. */
export type OpenPool = { owner: TenantId; pool: string; instance: string; due_ms: number }

/** An open pool that this process works on; its version shows changes by others meanwhile. */
export type ClaimedPool = OpenPool & { version: number }

const PAGE = 100

/** Stores which pools have calls, and when a process must look at them. Every method throws `unavailable` when the store does not answer. */
export class OpenPools {
  readonly #pools: Collection

  constructor(store: Store) {
    this.#pools = store.collection(OPEN_POOLS)
  }

  /** Makes a pool due at this time at the latest. */
  wake({ owner, pool, instance }: Omit<OpenPool, 'due_ms'>, due_ms: number): Promise<unknown> {
    return untilFirst(async () => {
      const found = await this.#pools.get(SYSTEM_TENANT, { owner, pool })
      if (found && Number(found.doc['due_ms']) <= due_ms) return true
      const doc = { owner, pool, instance, due_ms } satisfies OpenPool
      const isStored = found
        ? await this.#pools.replaceIfVersion(SYSTEM_TENANT, { doc, version: found.version })
        : await this.#pools.insert(SYSTEM_TENANT, doc)
      return isStored || OVERTAKEN
    })
  }

  /** Some pools that are due, the longest due first. */
  async due(nowMs: number): Promise<OpenPool[]> {
    const found = await this.#pools.page(SYSTEM_TENANT, { until: [nowMs], limit: PAGE })
    return found.map(({ doc }) => doc as OpenPool)
  }

  /** `undefined` when another process was first. The pool is due again at `untilMs`, so that the claim of a process that dies ends. */
  async claim({ owner, pool, due_ms }: OpenPool, untilMs: number): Promise<ClaimedPool | undefined> {
    const update = { key: { owner, pool }, where: { due_ms }, set: { due_ms: untilMs } }
    const found = await this.#pools.update(SYSTEM_TENANT, update)
    return found && { ...(found.doc as OpenPool), version: found.version }
  }

  /** Releases a claimed pool; without a time it has no calls and is removed. Changes by others meanwhile stay. */
  async release({ version, ...pool }: ClaimedPool, due_ms: number | undefined): Promise<void> {
    const key = { owner: pool.owner, pool: pool.pool }
    if (due_ms === undefined) await this.#pools.delete(SYSTEM_TENANT, key, version)
    else await this.#pools.replaceIfVersion(SYSTEM_TENANT, { doc: { ...pool, due_ms }, version })
  }
}

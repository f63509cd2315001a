import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { conflict } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { appendNext } from '../../../platform/store/append.ts'
import type { Collection, CollectionSpec, Fields, Store, Stored } from '../../../platform/store/port.ts'

/** Entries are deleted by their id, so that a delayed delete never removes another entry that has received the same number. */
export const FLOW_MEMORY: CollectionSpec = {
  name: 'flow_memory',
  key: ['flow_uid', 'id'],
  unique: [['flow_uid', 'seq']],
  order: { within: ['flow_uid'], by: ['seq'], direction: 'descending' },
  filters: ['scope'],
}

/** An entry of a flow's memory (D6.7). */
export type FlowMemoryEntry = { id: string; scope: string; content: string | JsonObject; created_at: string }
/** `seq` counts the entries of a flow over all its scopes. */
export type NumberedEntry = FlowMemoryEntry & { seq: number }

export type EntryQuery = { scope: string; limit: number; after?: number }

const MAX_ENTRIES = 1_000
const DELETED_AT_ONCE = 50

/** Stores the memory of flows, by the flow's uid. */
export class FlowMemoryStore {
  readonly #entries: Collection
  readonly #queue = createKeyedQueue()

  constructor(store: Store) {
    this.#entries = store.collection(FLOW_MEMORY)
  }

  /** Newest first; `after` is the `seq` of the last entry of the previous page. */
  async page(tenant: TenantId, uid: string, { scope, limit, after }: EntryQuery): Promise<NumberedEntry[]> {
    const where = { flow_uid: uid, scope }
    const page = await this.#entries.page(tenant, { where, limit, ...(after !== undefined && { after: [after] }) })
    return page.map(toEntry)
  }

  /** Throws `conflict` when the scope has 1,000 entries. */
  add(tenant: TenantId, uid: string, entry: FlowMemoryEntry): Promise<void> {
    return this.#queue.run(`${tenant} ${uid}`, async () => {
      await this.#assertRoom(tenant, uid, entry.scope)
      await this.#append(tenant, uid, entry)
    })
  }

  /** Stores the entry unless one with its id is already stored, and deletes the scope's oldest ones above `kept`. */
  rotate(tenant: TenantId, uid: string, { entry, kept }: { entry: FlowMemoryEntry; kept: number }): Promise<void> {
    return this.#queue.run(`${tenant} ${uid}`, async () => {
      await this.#append(tenant, uid, entry)
      const [last] = (await this.page(tenant, uid, { scope: entry.scope, limit: kept })).slice(kept - 1)
      if (last) await this.#removeAll(tenant, uid, { where: { scope: entry.scope }, after: [last.seq] })
    })
  }

  /** Returns whether the scope had this entry. */
  async remove(tenant: TenantId, uid: string, { scope, id }: { scope: string; id: string }): Promise<boolean> {
    const found = await this.#entries.get(tenant, { flow_uid: uid, id })
    return found?.doc['scope'] === scope && this.#entries.delete(tenant, { flow_uid: uid, id })
  }

  /** Deletes the entries of a scope. Returns how many there were. */
  removeScope(tenant: TenantId, uid: string, scope: string): Promise<number> {
    return this.#removeAll(tenant, uid, { where: { scope } })
  }

  /** Deletes the whole memory of a flow. */
  async removeFlow(tenant: TenantId, uid: string): Promise<void> {
    await this.#removeAll(tenant, uid, { where: {} })
  }

  async #append(tenant: TenantId, uid: string, entry: FlowMemoryEntry): Promise<void> {
    const within = { flow_uid: uid }
    await appendNext(this.#entries, tenant, { within, identity: { ...within, id: entry.id }, doc: { ...entry } })
  }

  /** Entries are numbered from 1, so they are counted only when the scope can be full. */
  async #assertRoom(tenant: TenantId, uid: string, scope: string): Promise<void> {
    const [newest] = await this.page(tenant, uid, { scope, limit: 1 })
    if (!newest || newest.seq < MAX_ENTRIES) return
    if ((await this.page(tenant, uid, { scope, limit: MAX_ENTRIES })).length >= MAX_ENTRIES)
      throw conflict(`the scope ${scope} has ${MAX_ENTRIES} entries; delete some first`)
  }

  /** Deletes from the newest entry on, or after the one given; an entry that is added meanwhile stays. */
  async #removeAll(
    tenant: TenantId,
    uid: string,
    { where, after }: { where: Fields; after?: readonly number[] },
  ): Promise<number> {
    const query = { where: { flow_uid: uid, ...where }, limit: DELETED_AT_ONCE }
    let [count, position] = [0, after]
    for (;;) {
      const page = await this.#entries.page(tenant, { ...query, after: position })
      const ids = page.map((stored) => toEntry(stored).id)
      const deleted = await Promise.all(ids.map((id) => this.#entries.delete(tenant, { flow_uid: uid, id })))
      count += deleted.filter(Boolean).length
      if (page.length < DELETED_AT_ONCE) return count
      position = page.slice(-1).map((stored) => toEntry(stored).seq)
    }
  }
}

/** Keeps the fields in the order of D6.7. */
function toEntry({ doc }: Stored): NumberedEntry {
  const { id, scope, content, created_at, seq } = doc as NumberedEntry
  return { id, scope, content, created_at, seq }
}

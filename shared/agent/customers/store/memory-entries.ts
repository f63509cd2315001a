import { randomUUID } from 'node:crypto'
import { createKeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { invalidRequest } from '../../../kernel/errors.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { appendNext } from '../../../platform/store/append.ts'
import type { CollectionSpec, Store, Stored } from '../../../platform/store/port.ts'

export const MEMORY_ENTRIES: CollectionSpec = {
  name: 'memory_entries',
  key: ['customer_id', 'seq'],
  unique: [['customer_id', 'id']],
  order: { within: ['customer_id'], by: ['seq'], direction: 'descending' },
}

/** One fact about a customer that `Dream` extracted from the history (D5.3). */
export type MemoryEntry = { id: string; content: string; created_at: string; run_id?: string }

export interface MemoryEntries {
  /** Deletes the customer's oldest entry when there are more than 100. Throws `invalid_request` when `content` is empty or too long. */
  add(tenant: TenantId, customerId: string, entry: Pick<MemoryEntry, 'content' | 'run_id'>): Promise<MemoryEntry>
  /** The newest `count` entries, newest first. */
  last(tenant: TenantId, customerId: string, count: number): Promise<MemoryEntry[]>
}

/** The same limit as for an entry of a flow's memory (D6.7). */
const MAX_BYTES = 8 * 1024
const MAX_ENTRIES = 100

export function createMemoryEntries(store: Store, { now = () => new Date() } = {}): MemoryEntries {
  const entries = store.collection(MEMORY_ENTRIES)
  const queue = createKeyedQueue()
  return {
    async add(tenant, customerId, { content, run_id }) {
      assertContent(content)
      const id = `mem_${randomUUID().replaceAll('-', '')}`
      const doc = { id, content, created_at: now().toISOString(), ...(run_id !== undefined && { run_id }) }
      const within = { customer_id: customerId }
      await queue.run(`${tenant} ${customerId}`, async () => {
        const seq = await appendNext(entries, tenant, { within, identity: { ...within, id }, doc })
        if (seq > MAX_ENTRIES) await entries.delete(tenant, { ...within, seq: seq - MAX_ENTRIES })
      })
      return doc
    },
    async last(tenant, customerId, count) {
      const limit = Math.min(count, MAX_ENTRIES)
      const found = await entries.page(tenant, { where: { customer_id: customerId }, limit })
      return found.map(toEntry)
    },
  }
}

function assertContent(content: string): void {
  if (content.trim() === '') throw invalidRequest('a memory entry is empty: write down what to remember')
  if (Buffer.byteLength(content) > MAX_BYTES)
    throw invalidRequest(
      `a memory entry is longer than ${MAX_BYTES} bytes: shorten it or split it into several entries`,
    )
}

function toEntry({ doc }: Stored): MemoryEntry {
  const { id, content, created_at, run_id } = doc as MemoryEntry
  return { id, content, created_at, ...(run_id !== undefined && { run_id }) }
}

import { startOfPage, toPage } from '../../../kernel/cursor.ts'
import { tooMany } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import { SYSTEM_TENANT, type TenantId } from '../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Store } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import {
  type Batch,
  type BatchItem,
  type BatchStatus,
  type Chunk,
  hasEnded,
  joinEnds,
  type NewChunk,
  progressOf,
} from './batch.ts'

export const BATCHES: CollectionSpec = {
  name: 'flow_batches',
  key: ['batch_id'],
  order: { within: [], by: ['created_ms', 'batch_id'], direction: 'descending' },
  filters: ['flow_name', 'status'],
  expiresBy: 'expires_ms',
}

/** The items of a chunk are its body, so that pages, which are read for a batch's progress, leave them out. */
export const BATCH_CHUNKS: CollectionSpec = {
  name: 'flow_batch_chunks',
  key: ['batch_id', 'chunk'],
  order: { within: ['batch_id'], by: ['chunk'], direction: 'ascending' },
  hasBody: true,
  expiresBy: 'expires_ms',
}

/** The batches of all tenants that may not have ended. They are stored under no tenant, so that an executor finds those of all tenants. */
export const OPEN_BATCHES: CollectionSpec = {
  name: 'open_batches',
  key: ['batch_id'],
  order: { within: [], by: ['batch_id'], direction: 'ascending' },
  total: { within: ['owner'], of: 'items' },
}

export type OpenBatch = { batch_id: string; owner: TenantId; items: number; entered_ms: number }

export type BatchQuery = {
  flow?: string | undefined
  status?: BatchStatus | undefined
  limit: number
  cursor?: string | undefined
}

const MAX_OPEN = 100
const FULL_RETRY_SECS = 60
const PAGE = 1_000
/** A creation that is not complete after this time never will be. */
const CREATION_MS = 600_000

/** Stores batches. Every method throws `unavailable` when the store does not answer. */
export class BatchStore {
  readonly #batches: Collection
  readonly #chunks: Collection
  readonly #open: Collection

  constructor(store: Store) {
    this.#batches = store.collection(BATCHES)
    this.#chunks = store.collection(BATCH_CHUNKS)
    this.#open = store.collection(OPEN_BATCHES)
  }

  /**
   * Stores a batch with its items; the record comes last, so that a batch with a record also has its items. May be repeated. Returns `false`
   * when it was already stored; throws
   * `rate_limit` when too many batches of the tenant have not ended.
   */
  async create(tenant: TenantId, batch: Batch, chunks: readonly NewChunk[]): Promise<boolean> {
    const { batch_id, items } = batch
    const expires_ms = Date.parse(batch.expires_at)
    const created_ms = Date.parse(batch.created_at)
    await this.#open.insert(SYSTEM_TENANT, {
      batch_id,
      owner: tenant,
      items,
      entered_ms: created_ms,
    } satisfies OpenBatch)
    const { count } = await this.#open.total(SYSTEM_TENANT, { owner: tenant })
    if (count > MAX_OPEN) {
      await this.close(batch_id)
      throw tooMany(`this tenant has ${MAX_OPEN} batches that have not ended; start it when one has`, FULL_RETRY_SECS)
    }
    const docs = chunks.map(({ items: own, ...chunk }) => {
      return { tenant, doc: { ...chunk, expires_ms }, body: JSON.stringify(own) }
    })
    for (const doc of docs) await this.#chunks.insertMissing([doc])
    return this.#batches.insert(tenant, { ...batch, flow_name: batch.flow.name, created_ms, expires_ms })
  }

  async get(tenant: TenantId, batchId: string): Promise<Batch | undefined> {
    const found = await this.#batches.get(tenant, { batch_id: batchId })
    return found && toBatch(found.doc)
  }

  /** Newest first. Throws `invalid_request` for an invalid cursor. */
  async list(tenant: TenantId, { flow, status, limit, cursor }: BatchQuery) {
    const where = { ...(flow !== undefined && { flow_name: flow }), ...(status !== undefined && { status }) }
    const after = startOfPage(cursor, ['number', 'string'])
    const found = await this.#batches.page(tenant, { where, after, limit: limit + 1 })
    const all = found.map(({ doc }) => toBatch(doc))
    const { page, next_cursor } = toPage(all, limit, (last) => [Date.parse(last.created_at), last.batch_id])
    return { batches: page, next_cursor }
  }

  /** The chunks in order, without their items. */
  async chunks(tenant: TenantId, batchId: string): Promise<Chunk[]> {
    const found = await this.#chunks.page(tenant, { where: { batch_id: batchId }, limit: PAGE })
    return found.map(({ doc }) => doc as Chunk)
  }

  async chunk(tenant: TenantId, batchId: string, chunk: number): Promise<NewChunk | undefined> {
    const found = await this.#chunks.get(tenant, { batch_id: batchId, chunk })
    return found && { ...(found.doc as Chunk), items: JSON.parse(found.body ?? '[]') as BatchItem[] }
  }

  /** Adds new ends of items. Returns all ends of the chunk. */
  saveEnds(tenant: TenantId, { batch_id, chunk, ends, look_at_ms = 0 }: Omit<Chunk, 'first'>) {
    return untilFirst(async () => {
      const found = await this.#chunks.get(tenant, { batch_id, chunk })
      if (!found) return ends
      const joined = joinEnds((found.doc as Chunk).ends, ends)
      const doc = { ...found.doc, ends: joined, look_at_ms }
      const isStored = await this.#chunks.replaceIfVersion(tenant, { doc, version: found.version })
      return isStored ? joined : OVERTAKEN
    })
  }

  /** running -> cancelling. Returns the batch as it is now. */
  async cancel(tenant: TenantId, batchId: string): Promise<Batch | undefined> {
    await this.#move(tenant, batchId, { from: 'running', set: { status: 'cancelling' } })
    return this.get(tenant, batchId)
  }

  /** Cancels a batch that no client knows, and deletes it at its end. */
  async takeBack(tenant: TenantId, batchId: string): Promise<void> {
    await this.#move(tenant, batchId, { from: 'running', set: { status: 'cancelling', is_refused: true } })
  }

  /**
   * Ends a batch when all its items have ended, and deletes the entry of one without a record. Returns whether it is over. `tell` is called before
   * the entry is deleted, so that another process calls it if this one dies: at least once.
   */
  async settle(
    tenant: TenantId,
    batchId: string,
    { at, tell }: { at: Date; tell(tenant: TenantId, batch: Batch): Promise<void> },
  ): Promise<boolean> {
    const batch = await this.get(tenant, batchId)
    if (!batch) return this.#forget(batchId, at)
    if (batch.ended_at === null) {
      const chunks = await this.chunks(tenant, batchId)
      if (!chunks.every(hasEnded)) return false
      if (batch.is_refused) return this.#remove(tenant, batchId)
      const end = { ended_at: at.toISOString(), progress: progressOf(batch.items, chunks) }
      const isDone = await this.#move(tenant, batchId, { from: 'running', set: { status: 'done', ...end } })
      if (!isDone) await this.#move(tenant, batchId, { from: 'cancelling', set: { status: 'cancelled', ...end } })
    }
    const ended = (await this.#open.get(SYSTEM_TENANT, { batch_id: batchId })) && (await this.get(tenant, batchId))
    if (ended) await tell(tenant, ended)
    await this.close(batchId)
    return true
  }

  async close(batchId: string): Promise<void> {
    await this.#open.delete(SYSTEM_TENANT, { batch_id: batchId })
  }

  /** A page of the batches of all tenants that may not have ended, after one of them. */
  async open(after: string | undefined): Promise<OpenBatch[]> {
    const found = await this.#open.page(SYSTEM_TENANT, {
      after: after === undefined ? undefined : [after],
      limit: PAGE,
    })
    return found.map(({ doc }) => doc as OpenBatch)
  }

  async #remove(tenant: TenantId, batchId: string): Promise<true> {
    await this.#batches.delete(tenant, { batch_id: batchId })
    await this.close(batchId)
    return true
  }

  async #forget(batchId: string, at: Date): Promise<boolean> {
    const entry = (await this.#open.get(SYSTEM_TENANT, { batch_id: batchId }))?.doc as OpenBatch | undefined
    if (entry && entry.entered_ms > at.getTime() - CREATION_MS) return false // The batch may still be being created.
    await this.close(batchId)
    return true
  }

  async #move(tenant: TenantId, batchId: string, { from, set }: { from: BatchStatus; set: JsonObject }) {
    const update = { key: { batch_id: batchId }, where: { status: from }, set }
    return (await this.#batches.update(tenant, update)) !== undefined
  }
}

function toBatch(doc: JsonObject): Batch {
  const { flow_name: _name, created_ms: _created, expires_ms: _expires, ...batch } = doc
  return batch as Batch
}

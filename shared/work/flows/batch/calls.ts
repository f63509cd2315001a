import { createHash } from 'node:crypto'
import { mayWaitForBatches } from '../../../agent/providers/batch/pool/pool.ts'
import { conflict, invalidRequest, notFound } from '../../../kernel/errors.ts'
import { itemTraceId, newId } from '../../../kernel/ids.ts'
import { PROVIDER_TYPES } from '../../../kernel/provider-types.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { DAY_MS, HOUR_MS } from '../../../kernel/time.ts'
import type { ApiType } from '../../../platform/api/api-type.ts'
import { canonicalHash, type JoinableKeys, keyMismatch } from '../../../platform/store/idempotency.ts'
import { undoRefused } from '../../../platform/store/take-back.ts'
import type { LiveConfigs } from '../../../tenancy/tenant-config/live-configs.ts'
import { findInstance } from '../../../tenancy/tenant-config/settings.ts'
import type { JobQueue } from '../../queue/port.ts'
import { routesOf } from '../calls/start-execution.ts'
import { shownFailure } from '../execute/outcome.ts'
import type { Dispatches } from '../port.ts'
import type { StoredFlows } from '../stored-flows.ts'
import {
  type Batch,
  type BatchItem,
  type BatchRequest,
  type Chunk,
  chunkJobId,
  divide,
  type ItemEnd,
  maySendInBatches,
  progressOf,
  shownBatch,
} from './batch.ts'
import type { BatchQuery, BatchStore } from './store.ts'

type BatchCallsDeps = {
  library: Pick<StoredFlows, 'published'>
  configs: Pick<LiveConfigs, 'get'>
  batches: BatchStore
  dispatches: Pick<Dispatches, 'get' | 'output'>
  idempotency: JoinableKeys
  queue: Pick<JobQueue, 'add'>
  now: () => Date
}

type Caller = { subject: string; idempotencyKey: string | undefined }
type Shown = ApiType<'FlowBatch'>
type Result = ApiType<'FlowBatchResult'>

const DEFAULT_HOURS = 24
const OPERATION = 'flow_batch'
/** The executions that are read at a time for results. */
const AT_ONCE = 16

/** Starts, shows and cancels batches for the API, and reads their results (D55). */
export class BatchCalls {
  readonly #deps: BatchCallsDeps

  constructor(deps: BatchCallsDeps) {
    this.#deps = deps
  }

  /**
   * Throws `not_found` for a flow that is not published, `invalid_request` for an unknown instance or model and for a repeated `custom_id`,
   * `conflict` for a key that another request has used, and `rate_limit` above the tenant's limit.
   */
  async start(
    tenant: TenantId,
    name: string,
    { request, ...caller }: Caller & { request: BatchRequest },
  ): Promise<{ batch: Shown; isReplayed: boolean }> {
    const { idempotency, batches } = this.#deps
    assertDistinct(request.items)
    const planned = await this.#plan(tenant, name, { request, ...caller })
    const [{ batch_id: id }, key] = [planned, caller.idempotencyKey]
    return this.#startOnce(tenant, planned, { request, caller }).catch(async (cause: unknown) => {
      const free = async () => key === undefined || idempotency.release(tenant, { operation: OPERATION, key, id })
      await undoRefused(cause, { free, takeBack: () => batches.takeBack(tenant, id) })
      throw cause
    })
  }

  async #startOnce(tenant: TenantId, planned: Batch, { request, caller }: Starting) {
    const { batches, queue } = this.#deps
    const { batch_id: id } = await this.#reserve(tenant, planned, { request, caller })
    if (id !== planned.batch_id && (await batches.get(tenant, id)))
      return { batch: await this.get(tenant, id), isReplayed: true }
    const chunks = divide(id, request.items)
    const batch = { ...planned, batch_id: id, chunks: chunks.length }
    if (!(await batches.create(tenant, batch, chunks))) return { batch: await this.get(tenant, id), isReplayed: true }
    // A job that cannot be added now is added seconds after the queue is back (`reconcileBatches`).
    await Promise.all(chunks.map((each) => queue.add(jobOf(tenant, each), { isNew: true }))).catch(() => {})
    // Does not read the store again, because it may be away by now.
    return { batch: shownBatch(batch, progressOf(batch.items, chunks)), isReplayed: false }
  }

  /** Throws `not_found` for an unknown id, and that of another tenant. */
  async get(tenant: TenantId, batchId: string): Promise<Shown> {
    return this.#shown(tenant, await this.#found(tenant, batchId))
  }

  async list(tenant: TenantId, query: BatchQuery): Promise<ApiType<'FlowBatchList'>> {
    const { batches: found, next_cursor } = await this.#deps.batches.list(tenant, query)
    const known = found.filter(({ is_refused }) => !is_refused)
    return { batches: await Promise.all(known.map((each) => this.#shown(tenant, each))), next_cursor }
  }

  /** Throws `conflict` for a batch that has ended. */
  async cancel(tenant: TenantId, batchId: string): Promise<Shown> {
    const batch = await this.#deps.batches.cancel(tenant, batchId)
    if (batch && batch.ended_at !== null) throw conflict(`the batch is ${batch.status}: there is nothing to cancel`)
    return this.get(tenant, batchId)
  }

  /** The results of ended items after item `after`, in the order of the items. Throws `not_found` as `get` does. */
  async results(tenant: TenantId, batchId: string, after = 0): Promise<AsyncIterable<Result>> {
    const { chunks } = await this.#found(tenant, batchId)
    return this.#read(tenant, batchId, { chunks, after })
  }

  async *#read(
    tenant: TenantId,
    batchId: string,
    { chunks, after }: { chunks: number; after: number },
  ): AsyncGenerator<Result, void, undefined> {
    for (let number = 0; number < chunks; number++) {
      const chunk = await this.#deps.batches.chunk(tenant, batchId, number)
      if (!chunk || chunk.first + chunk.items.length <= after) continue
      const ended = chunk.items.flatMap(({ custom_id }, i) => {
        const [item, end] = [chunk.first + i, chunk.ends[i]]
        return end && item > after ? [{ item, custom_id: custom_id ?? String(item), end }] : []
      })
      for (let i = 0; i < ended.length; i += AT_ONCE)
        yield* await Promise.all(ended.slice(i, i + AT_ONCE).map((each) => this.#result(tenant, batchId, each)))
    }
  }

  async #result(tenant: TenantId, batchId: string, { item, custom_id, end }: Ended): Promise<Result> {
    const { dispatches } = this.#deps
    const [status, input_tokens, output_tokens, cost_usd] = end
    const trace_id = itemTraceId(batchId, item)
    const dispatch = await dispatches.get(tenant, trace_id)
    const { output = null, problems } = (dispatch && (await dispatches.output(tenant, dispatch))) ?? {}
    const isLost = HAS_FAILED.has(status) && !dispatch
    const error = dispatch?.error ? (shownFailure(dispatch.error) as Result['error']) : isLost ? NO_RECORD : null
    const shown = { item, custom_id, trace_id, status, output: status === 'ok' ? output : null, error }
    return { ...shown, ...(problems && { problems: [...problems] }), input_tokens, output_tokens, cost_usd }
  }

  async #shown(tenant: TenantId, batch: Batch): Promise<Shown> {
    const { batches } = this.#deps
    const read = async () => progressOf(batch.items, await batches.chunks(tenant, batch.batch_id))
    return shownBatch(batch, batch.progress ?? (await read()))
  }

  async #found(tenant: TenantId, batchId: string): Promise<Batch> {
    const batch = await this.#deps.batches.get(tenant, batchId)
    if (batch && !batch.is_refused) return batch
    throw notFound('no batch has this id; check the id in the path')
  }

  /** The batch for a request, with a new id. */
  async #plan(
    tenant: TenantId,
    name: string,
    { request, subject }: Caller & { request: BatchRequest },
  ): Promise<Batch> {
    const { library, configs, now } = this.#deps
    const { items, deadline_hours: hours = DEFAULT_HOURS, version, ...rest } = request
    const flow = await library.published(tenant, name, version)
    const config = await configs.get(tenant)
    const { primary } = routesOf(flow.definition, rest, config)
    const { type } = findInstance(config, primary.instance)
    const isPooled = mayWaitForBatches(request.deadline_hours) && maySendInBatches(flow.definition)
    const takesBatches = PROVIDER_TYPES[type].hasBatches === true
    const [createdMs, deadlineMs] = [now().getTime(), now().getTime() + HOUR_MS * hours]
    // Its data is kept until its last item has ended, plus a day.
    const expiresMs = Math.max(createdMs + DAY_MS * config.audit.retention_days, deadlineMs + DAY_MS)
    return {
      batch_id: newId('batch'),
      flow: { name: flow.name, uid: flow.uid, version: flow.version },
      subject,
      request: rest,
      model: primary.model,
      vendor_instance: isPooled && takesBatches ? primary.instance : null,
      status: 'running',
      items: items.length,
      chunks: 0,
      created_at: new Date(createdMs).toISOString(),
      deadline_at: new Date(deadlineMs).toISOString(),
      ended_at: null,
      expires_at: new Date(expiresMs).toISOString(),
    }
  }

  /** The batch with the id of its key: its own, or that of an earlier request with the same body. */
  async #reserve(tenant: TenantId, batch: Batch, { request, caller }: Starting): Promise<Pick<Batch, 'batch_id'>> {
    const { idempotency } = this.#deps
    const { idempotencyKey: key } = caller
    if (key === undefined) return batch
    const { items, ...rest } = request
    const body = {
      ...rest,
      flow: batch.flow.name,
      items: createHash('sha256').update(JSON.stringify(items)).digest('hex'),
    }
    const use = { operation: OPERATION, key, hash: canonicalHash(body), id: batch.batch_id }
    for (;;) {
      const reservation = await idempotency.reserve(tenant, use)
      if (reservation.state === 'mismatch') throw keyMismatch('batch')
      if (reservation.state === 'reserved') return batch
      const { id } = reservation
      // If not, the earlier request was refused and has freed the key.
      if (await idempotency.join(tenant, { operation: OPERATION, key, id })) return { batch_id: id }
    }
  }
}

type Starting = { request: BatchRequest; caller: Caller }
type Ended = { item: number; custom_id: string; end: ItemEnd }

const jobOf = (tenant: TenantId, { batch_id, chunk }: Pick<Chunk, 'batch_id' | 'chunk'>) =>
  ({ kind: 'batch', tenant, id: chunkJobId(batch_id, chunk) }) as const

const HAS_FAILED: ReadonlySet<string> = new Set(['error', 'rejected'])

/** The result of an item without a record: its flow was deleted, its input was too long to be stored, or the record has expired. */
const NO_RECORD: Result['error'] = {
  type: 'not_found_error',
  message:
    'there is no record of this item: its flow was deleted before it began, its input is too long, or the record has expired',
}

/** An item without a `custom_id` has its number as one. */
function assertDistinct(items: readonly BatchItem[]): void {
  const seen = new Set<string>()
  for (const [i, { custom_id = String(i + 1) }] of items.entries()) {
    if (seen.has(custom_id))
      throw invalidRequest('two items have this custom_id: give each one of its own', {
        param: `/items/${i}/custom_id`,
      })
    seen.add(custom_id)
  }
}

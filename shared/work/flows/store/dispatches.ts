import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { startOfPage, toPage } from '../../../kernel/cursor.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { MAX_DOCUMENT_BYTES } from '../../../platform/store/document.ts'
import type { Collection, Store } from '../../../platform/store/port.ts'
import {
  DISPATCH_KINDS,
  type Dispatch,
  type Dispatches,
  type DispatchOutput,
  type DispatchPage,
  type DispatchQuery,
  type DispatchStore,
} from '../port.ts'
import { begin, end as endDispatch, isHeldBy } from '../transitions.ts'
import {
  DISPATCH_ANSWERS,
  DISPATCH_INPUTS,
  DISPATCH_OUTPUTS,
  DISPATCHES,
  dispatchPosition,
  toDispatch,
  toDoc,
  toOutput,
} from './dispatch-documents.ts'
import { fitResult } from './dispatch-output.ts'

/** How long an answer is kept for waiting clients when payloads are not kept; as long as an idempotency key (D6.6). */
const ANSWER_MS = 86_400_000
/** Dispatches that this process need not read again to begin or end them. */
const MAX_REMEMBERED = 1_000
/** Whoever has ended a dispatch looks at it at once. The time is short, so that one that is deleted elsewhere is soon forgotten here. */
const ENDED_MS = 10_000
/** Whoever has created a dispatch follows it at once. */
const CREATED_MS = 1_000
const REMOVED_AT_ONCE = 20

export class StoredDispatches implements DispatchStore {
  readonly #dispatches: Collection
  readonly #inputs: Collection
  readonly #outputs: Collection
  readonly #answers: Collection
  readonly #now: () => Date
  /** The queued ones as they were read last, and the running ones that this process has begun. A write finds out if one has changed. */
  readonly #remembered = new LRUCache<string, Found>({ max: MAX_REMEMBERED })
  /** Those that this process has just ended. They never change. */
  readonly #ended = new LRUCache<string, Dispatch>({ max: MAX_REMEMBERED, ttl: ENDED_MS })

  /** The queued ones that this process has just created. */
  readonly #created = new LRUCache<string, Dispatch>({ max: MAX_REMEMBERED, ttl: CREATED_MS })

  constructor(store: Store, { now = () => new Date() } = {}) {
    this.#dispatches = store.collection(DISPATCHES)
    this.#inputs = store.collection(DISPATCH_INPUTS)
    this.#outputs = store.collection(DISPATCH_OUTPUTS)
    this.#answers = store.collection(DISPATCH_ANSWERS)
    this.#now = now
  }

  /** Repeating a call whose answer was lost changes nothing. Throws `invalid_request` (413) for an input above the store's limit. */
  async create(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void> {
    if (dispatch.status === 'rejected') {
      const keep = dispatch.keeps_payloads && this.#keepRefusedInput(tenant, dispatch, input)
      await Promise.all([keep, this.#dispatches.insert(tenant, toDoc(dispatch))])
      return
    }
    // At the same time, because the job follows: without one nobody reads either document.
    const keeping = this.#keepInput(tenant, dispatch, input)
    const inserting = this.#dispatches.insert(tenant, toDoc(dispatch), { durability: 'weak' })
    await Promise.all([keeping, inserting]).catch(async (cause: unknown) => {
      const isNew = await inserting.catch(() => false)
      if (isNew) await this.#dispatches.delete(tenant, { trace_id: dispatch.trace_id }).catch(() => {})
      throw cause
    })
    this.#created.set(keyOf(tenant, dispatch.trace_id), dispatch)
  }

  takeCreated(tenant: TenantId, traceId: string): Dispatch | undefined {
    const created = this.#created.get(keyOf(tenant, traceId))
    this.#created.delete(keyOf(tenant, traceId))
    return created
  }

  async get(tenant: TenantId, traceId: string): Promise<Dispatch | undefined> {
    const ended = this.#ended.get(keyOf(tenant, traceId))
    if (ended && Date.parse(ended.expires_at) > this.#now().getTime()) return ended
    const found = await this.#find(tenant, traceId)
    if (found?.dispatch.status === 'queued') this.#remembered.set(keyOf(tenant, traceId), found)
    return found?.dispatch
  }

  async input(tenant: TenantId, traceId: string): Promise<JsonObject | undefined> {
    const found = await this.#inputs.get(tenant, { trace_id: traceId })
    return found?.doc['input'] as JsonObject | undefined
  }

  async output(tenant: TenantId, dispatch: Dispatch): Promise<DispatchOutput | undefined> {
    const { output_id } = dispatch
    if (output_id === undefined) return undefined
    const found = await this.#outputsOf(dispatch).get(tenant, { output_id })
    return found && toOutput(found.doc)
  }

  async begin(tenant: TenantId, traceId: string, executor: number): Promise<Dispatch | undefined> {
    const found = this.#recall(tenant, traceId) ?? (await this.#find(tenant, traceId))
    const dispatch = found && begin(executor)(found.dispatch)
    if (!dispatch) return undefined
    const { version } = found
    if (!(await this.#dispatches.replaceIfVersion(tenant, { doc: toDoc(dispatch), version }))) return undefined
    this.#remembered.set(keyOf(tenant, traceId), { dispatch, version: version + 1 })
    return dispatch
  }

  async end(tenant: TenantId, traceId: string, end: End): Promise<Dispatch | undefined> {
    const { executor, mayWrite = () => true } = end
    const found = await this.#findToEnd(tenant, traceId, executor)
    if (!found || !mayWrite()) return undefined
    const { result, output } = end.output ? fitResult({ ...end, output: end.output }) : end
    const outputId = output && (await this.#keepOutput(tenant, found.dispatch, output))
    const dispatch = endDispatch({ executor, result, outputId, at: this.#now() })(found.dispatch)
    if (!dispatch || !mayWrite()) return undefined
    const [isEnded] = await Promise.all([
      this.#dispatches.replaceIfVersion(tenant, { doc: toDoc(dispatch), version: found.version }),
      // An input that an executor has begun with is read by nobody else.
      executor !== null && this.#dropInput(tenant, dispatch),
    ])
    if (isEnded) this.#ended.set(keyOf(tenant, traceId), dispatch)
    if (isEnded && executor === null) await this.#dropInput(tenant, dispatch)
    if (isEnded) return dispatch
    if (outputId !== undefined && mayWrite()) await this.#outputsOf(dispatch).delete(tenant, { output_id: outputId })
    return undefined
  }

  async list(tenant: TenantId, query: DispatchQuery): Promise<DispatchPage> {
    const { kind, flow, status, sinceMs, limit } = query
    const found = await this.#dispatches.page(tenant, {
      where: { kind, ...(flow !== undefined && { flow_name: flow }), ...(status !== undefined && { status }) },
      after: startOf(query),
      until: sinceMs === undefined ? undefined : [sinceMs],
      limit: limit + 1,
    })
    const all = found.map(({ doc }) => toDispatch(doc))
    const { page: dispatches, next_cursor } = toPage(all, limit, dispatchPosition)
    return { dispatches, next_cursor }
  }

  async removeStartedBefore(tenant: TenantId, beforeMs: number, limit: number): Promise<number> {
    let removed = 0
    for (const kind of DISPATCH_KINDS) {
      while (removed < limit) {
        const page = { where: { kind }, after: [beforeMs], limit: Math.min(REMOVED_AT_ONCE, limit - removed) }
        const found = await this.#dispatches.page(tenant, page)
        await Promise.all(found.map(({ doc }) => this.#remove(tenant, toDispatch(doc))))
        removed += found.length
        if (found.length === 0) break
      }
    }
    return removed
  }

  async #find(tenant: TenantId, traceId: string): Promise<Found | undefined> {
    const found = await this.#dispatches.get(tenant, { trace_id: traceId })
    return found && { dispatch: toDispatch(found.doc), version: found.version }
  }

  /** The dispatch, when this executor still runs it; with `null`, when it is queued. */
  async #findToEnd(tenant: TenantId, traceId: string, executor: number | null): Promise<Found | undefined> {
    const recalled = this.#recall(tenant, traceId)
    const found = recalled?.dispatch.executor === executor ? recalled : await this.#find(tenant, traceId)
    return found && isHeldBy(found.dispatch, executor) ? found : undefined
  }

  /** Returns a remembered dispatch, and forgets it, because a write is to change it. */
  #recall(tenant: TenantId, traceId: string): Found | undefined {
    const key = keyOf(tenant, traceId)
    const found = this.#remembered.get(key)
    this.#remembered.delete(key)
    return found
  }

  async #keepInput(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void> {
    const doc = { trace_id: dispatch.trace_id, expires_ms: this.#payloadExpiry(dispatch), input }
    try {
      await this.#inputs.insert(tenant, doc, { durability: 'weak' })
    } catch (cause) {
      if (!isTooLong(cause)) throw cause
      throw new AppError('invalid_request', `input is longer than ${MAX_DOCUMENT_BYTES} bytes: send less`, {
        status: 413,
        param: '/input',
      })
    }
  }

  /** Keeps the input of a request that was refused, unless the input is too long: that may be why it was refused. */
  async #keepRefusedInput(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void> {
    await this.#keepInput(tenant, dispatch, input).catch((cause: unknown) => {
      if (!isTooLong(cause)) throw cause
    })
  }

  async #keepOutput(tenant: TenantId, dispatch: Dispatch, output: DispatchOutput): Promise<string> {
    const output_id = randomUUID()
    const kept = dispatch.keeps_payloads ? output : { ...output, raw_output: '' }
    const expires_ms = this.#payloadExpiry(dispatch)
    await this.#outputsOf(dispatch).insert(tenant, { output_id, expires_ms, ...kept }, { durability: 'ordered' })
    return output_id
  }

  /** Deletes the input unless payloads are kept. When that fails, it expires. */
  async #dropInput(tenant: TenantId, { trace_id, keeps_payloads }: Dispatch): Promise<void> {
    if (!keeps_payloads) await this.#inputs.delete(tenant, { trace_id }).catch(() => {})
  }

  async #remove(tenant: TenantId, dispatch: Dispatch): Promise<void> {
    const { trace_id, output_id } = dispatch
    await Promise.all([
      this.#inputs.delete(tenant, { trace_id }),
      output_id !== undefined && this.#outputsOf(dispatch).delete(tenant, { output_id }),
    ])
    await this.#dispatches.delete(tenant, { trace_id })
    this.#ended.delete(keyOf(tenant, trace_id))
  }

  #outputsOf({ keeps_payloads }: Dispatch): Collection {
    return keeps_payloads ? this.#outputs : this.#answers
  }

  #payloadExpiry({ keeps_payloads, expires_at }: Dispatch): number {
    const expiresMs = Date.parse(expires_at)
    return keeps_payloads ? expiresMs : Math.min(expiresMs, this.#now().getTime() + ANSWER_MS)
  }
}

type End = Parameters<Dispatches['end']>[2]
type Found = { dispatch: Dispatch; version: number }

const keyOf = (tenant: TenantId, traceId: string): string => `${tenant} ${traceId}`

/** The position after which a page begins: that of the cursor, or `untilMs` when it is earlier. */
function startOf({ cursor, untilMs = Infinity }: DispatchQuery): (string | number)[] | undefined {
  const after = startOfPage(cursor, ['number', 'string'])
  if (after && after[0] < untilMs) return after
  return untilMs === Infinity ? undefined : [untilMs]
}

const isTooLong = (cause: unknown) => cause instanceof AppError && cause.status === 413

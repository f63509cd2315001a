import { LRUCache } from 'lru-cache'
import { startOfPage, toPage } from '../../../kernel/cursor.ts'
import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Collection, Store, Stored } from '../../../platform/store/port.ts'
import {
  DISPATCH_KINDS,
  type Dispatch,
  type Dispatches,
  type DispatchOutput,
  type DispatchPage,
  type DispatchQuery,
  type DispatchStore,
} from '../port.ts'
import {
  BEGINS,
  begunBy,
  type DispatchTransition,
  end as endDispatch,
  isHeldBy,
  isKeptByDeadline,
  noteAction,
  notStarted,
  takeOver,
} from '../transitions.ts'
import {
  DISPATCHES,
  dispatchPosition,
  IN_RECORD,
  type OwnPayloads,
  ownPayloads,
  toDispatch,
  toDoc,
} from './dispatch-documents.ts'
import { DispatchPayloads, fitResult } from './dispatch-payloads.ts'

/** Dispatches that this process need not read again to begin or end them. */
const MAX_REMEMBERED = 1_000
/**
 * How long an ended dispatch is remembered, because it is usually read at once. The time is short, so that a dispatch
 * that is deleted elsewhere is soon forgotten here.
 */
const ENDED_MS = 10_000
/** How long a created dispatch is remembered, because it is usually followed at once. */
const CREATED_MS = 1_000
const REMOVED_AT_ONCE = 20

export class StoredDispatches implements DispatchStore {
  readonly #dispatches: Collection
  readonly #payloads: DispatchPayloads
  readonly #now: () => Date
  /** The last read state of queued dispatches, and the running ones that this process has begun. A write detects if one has changed. */
  readonly #remembered = new LRUCache<string, Found>({ max: MAX_REMEMBERED })
  /** The dispatches that this process has just ended. They never change. */
  readonly #ended = new LRUCache<string, Dispatch>({ max: MAX_REMEMBERED, ttl: ENDED_MS })

  /** The queued dispatches that this process has just created. */
  readonly #created = new LRUCache<string, Dispatch>({ max: MAX_REMEMBERED, ttl: CREATED_MS })

  constructor(store: Store, { now = () => new Date() } = {}) {
    this.#dispatches = store.collection(DISPATCHES)
    this.#payloads = new DispatchPayloads(store, now)
    this.#now = now
  }

  /**
   * Repeating a call whose answer was lost changes nothing. Throws `invalid_request` (413) for an input above the store's limit, and `unavailable` for an
   * execution whose id was closed meanwhile.
   */
  async create(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<void> {
    const own = this.#payloads.ownInput(dispatch, input)
    if (dispatch.status === 'rejected') return this.#createRejected(tenant, dispatch, { input, own })
    const isNew = await (own
      ? this.#dispatches.insert(tenant, toDoc(dispatch, own), { durability: 'weak' })
      : this.#createWith(tenant, dispatch, input))
    if (!isNew && (await this.#find(tenant, dispatch.trace_id))?.dispatch.status === 'rejected') throw notStarted()
    this.#created.set(keyOf(tenant, dispatch.trace_id), dispatch)
  }

  async #createRejected(tenant: TenantId, dispatch: Dispatch, { input, own }: NewInput): Promise<void> {
    const isKept = dispatch.keeps_payloads
    await Promise.all([
      isKept && !own && this.#payloads.keepRefusedInput(tenant, dispatch, input),
      this.#dispatches.insert(tenant, toDoc(dispatch, isKept ? own : undefined)),
    ])
  }

  /** Stores the input separately and at the same time as the record: until the job follows, neither is read. */
  async #createWith(tenant: TenantId, dispatch: Dispatch, input: JsonObject): Promise<boolean> {
    const keeping = this.#payloads.keepInput(tenant, dispatch, input)
    const inserting = this.#dispatches.insert(tenant, toDoc(dispatch), { durability: 'weak' })
    const stored = await Promise.all([inserting, keeping]).catch(async (cause: unknown) => {
      const isNew = await inserting.catch(() => false)
      if (isNew) await this.#dispatches.delete(tenant, { trace_id: dispatch.trace_id }).catch(() => {})
      throw cause
    })
    return stored[0]
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
    const { own_input } = this.#remembered.get(keyOf(tenant, traceId)) ?? (await this.#find(tenant, traceId)) ?? {}
    return own_input ?? this.#payloads.input(tenant, traceId)
  }

  async output(tenant: TenantId, dispatch: Dispatch): Promise<DispatchOutput | undefined> {
    const { trace_id, output_id } = dispatch
    if (output_id === undefined) return undefined
    if (output_id === IN_RECORD) return (await this.#find(tenant, trace_id))?.own_output
    return this.#payloads.output(tenant, dispatch, output_id)
  }

  async begin(tenant: TenantId, traceId: string, executor: number): Promise<Dispatch | undefined> {
    this.#recall(tenant, traceId)
    const update = { key: { trace_id: traceId }, where: BEGINS, set: begunBy(executor) }
    const stored = await this.#dispatches.update(tenant, update, { durability: 'weak' })
    if (!stored) return undefined
    const begun = toFound(stored)
    this.#remembered.set(keyOf(tenant, traceId), begun)
    return begun.dispatch
  }

  takeOver(tenant: TenantId, traceId: string, by: { from: number; executor: number }): Promise<Dispatch | undefined> {
    return this.#change(tenant, traceId, { executor: by.from, change: takeOver(by) })
  }

  async park(tenant: TenantId, traceId: string, look_at_ms: number): Promise<boolean> {
    this.#recall(tenant, traceId)
    const update = { key: { trace_id: traceId }, where: BEGINS, set: { look_at_ms } }
    return (await this.#dispatches.update(tenant, update)) !== undefined
  }

  async noteAction(tenant: TenantId, traceId: string, executor: number): Promise<boolean> {
    return (await this.#change(tenant, traceId, { executor, change: noteAction(executor) })) !== undefined
  }

  /** Changes a dispatch that this executor runs. */
  async #change(
    tenant: TenantId,
    traceId: string,
    { executor, change }: { executor: number; change: DispatchTransition },
  ): Promise<Dispatch | undefined> {
    const found = await this.#findToEnd(tenant, traceId, executor)
    const dispatch = found && change(found.dispatch)
    if (!dispatch) return undefined
    const doc = toDoc(dispatch, found)
    const isChanged = await this.#dispatches.replaceIfVersion(tenant, { doc, version: found.version })
    return isChanged ? dispatch : undefined
  }

  async end(tenant: TenantId, traceId: string, end: End): Promise<Dispatch | undefined> {
    const { executor, mayWrite = () => true } = end
    const found = await this.#findToEnd(tenant, traceId, executor)
    if (!found || !mayWrite()) return undefined
    const { result, output } = end.output ? fitResult({ ...end, output: end.output }) : end
    const own = this.#payloads.ownAtEnd(found, output)
    const keep = async () => output && this.#payloads.keepOutput(tenant, found.dispatch, output)
    const outputId = own.own_output ? IN_RECORD : await keep()
    const dispatch = endDispatch({ executor, result, outputId, at: this.#now() })(found.dispatch)
    if (!dispatch || !mayWrite()) return undefined
    const [isEnded] = await Promise.all([
      this.#dispatches.replaceIfVersion(tenant, { doc: toDoc(dispatch, own), version: found.version }),
      // When an executor has begun, no other process reads the input.
      executor !== null && this.#payloads.dropInput(tenant, found),
    ])
    if (isEnded) this.#ended.set(keyOf(tenant, traceId), dispatch)
    if (isEnded && executor === null) await this.#payloads.dropInput(tenant, found)
    if (isEnded) return dispatch
    if (outputId !== undefined && !own.own_output && mayWrite())
      await this.#payloads.dropOutput(tenant, dispatch, outputId)
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
      for (let after: (string | number)[] = [beforeMs]; removed < limit; ) {
        const page = { where: { kind }, after, limit: Math.min(REMOVED_AT_ONCE, limit - removed) }
        const found = (await this.#dispatches.page(tenant, page)).map(({ doc }) => toDispatch(doc))
        const over = found.filter((each) => !isKeptByDeadline(each, this.#now().getTime()))
        await Promise.all(over.map((each) => this.#remove(tenant, each)))
        removed += over.length
        const last = found.at(-1)
        if (!last) break
        after = dispatchPosition(last)
      }
    }
    return removed
  }

  async #find(tenant: TenantId, traceId: string): Promise<Found | undefined> {
    const found = await this.#dispatches.get(tenant, { trace_id: traceId })
    return found && toFound(found)
  }

  /** The dispatch, when this executor still runs it; with `null`, when it is queued. */
  async #findToEnd(tenant: TenantId, traceId: string, executor: number | null): Promise<Found | undefined> {
    const recalled = this.#recall(tenant, traceId)
    const found = recalled?.dispatch.executor === executor ? recalled : await this.#find(tenant, traceId)
    return found && isHeldBy(found.dispatch, executor) ? found : undefined
  }

  /** Returns a remembered dispatch, and forgets it, because a write is about to change it. */
  #recall(tenant: TenantId, traceId: string): Found | undefined {
    const key = keyOf(tenant, traceId)
    const found = this.#remembered.get(key)
    this.#remembered.delete(key)
    return found
  }

  async #remove(tenant: TenantId, dispatch: Dispatch): Promise<void> {
    const { trace_id } = dispatch
    await this.#payloads.remove(tenant, dispatch)
    await this.#dispatches.delete(tenant, { trace_id })
    for (const known of [this.#ended, this.#remembered]) known.delete(keyOf(tenant, trace_id))
  }
}

type End = Parameters<Dispatches['end']>[2]
type NewInput = { input: JsonObject; own: OwnPayloads | undefined }
type Found = OwnPayloads & { dispatch: Dispatch; version: number }

function toFound({ doc, version }: Stored): Found {
  const { own_input, own_output } = ownPayloads(doc)
  return { dispatch: toDispatch(doc), version, ...(own_input && { own_input }), ...(own_output && { own_output }) }
}

const keyOf = (tenant: TenantId, traceId: string): string => `${tenant} ${traceId}`

/** The position after which a page begins: that of the cursor, or `untilMs` when it is earlier. */
function startOf({ cursor, untilMs = Infinity }: DispatchQuery): (string | number)[] | undefined {
  const after = startOfPage(cursor, ['number', 'string'])
  if (after && after[0] < untilMs) return after
  return untilMs === Infinity ? undefined : [untilMs]
}

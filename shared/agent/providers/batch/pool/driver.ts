import { inSlices } from '../../../../kernel/async/slices.ts'
import { hasKind } from '../../../../kernel/errors.ts'
import { newId } from '../../../../kernel/ids.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { TenantId } from '../../../../kernel/tenant.ts'
import type { BatchAnswer, VendorBatches } from '../port.ts'
import { newsOf, PAUSE, pauseAfter, SUBMIT_MS } from './news.ts'
import type { ClaimedPool } from './open-pools.ts'
import { answersTo, GATHER } from './pool.ts'
import { nameOf, type Parcel, type PoolBatch, type PoolStore, type WaveKey } from './store.ts'

export type DriverDeps = {
  store: PoolStore
  /** `undefined` for an instance that has no batch endpoints or was deleted. */
  openVendor(tenant: TenantId, instance: string): Promise<VendorBatches | undefined>
  /** Throws `rate_limit` when the tenant's budget is used up, and `unavailable` when that is not known. */
  assertBudget(tenant: TenantId): Promise<void>
  /** Called when the calls of these waves have their answers. */
  onAnswered(tenant: TenantId, waves: readonly WaveKey[]): Promise<void>
  now: () => Date
  log: Log
}

/**
 * The most calls and bytes of one batch, far below the vendors' limits (16 MiB fit into a request to Gemini), because this process holds the batch
 * and its answers in memory. Also the most pools that this process works on at a time, and the most of one tenant, so that a tenant with a slow
 * vendor leaves some to others.
 */
const MOST = { calls: 5_000, bytes: 16 * 1024 * 1024, pools: 4, poolsOfTenant: 2 }
/** If a vendor refuses the content of a batch with more calls than this, its calls are sent again in batches of a tenth. */
const FEW = 100
const DOCUMENTS_AT_ONCE = 16
const DOCUMENTS_TOGETHER = 100
/** How long a claim keeps other processes from a pool. Even two processes at one pool send nothing twice. */
const CLAIM_MS = 60_000

/** A pool that this process works on. Without a vendor its calls are sent live. */
type Pool = { tenant: TenantId; id: string; vendor: VendorBatches | undefined }

/** Sends the calls of pools to their vendors, and stores the answers (D58). Several processes may do that at the same time. */
export class PoolDriver {
  readonly #deps: DriverDeps
  readonly #atWork = new Map<string, Promise<void>>()

  constructor(deps: DriverDeps) {
    this.#deps = deps
  }

  /** Begins to work on the pools that are due. Throws `unavailable` when the store is away. */
  async look(): Promise<void> {
    const { store, now, log } = this.#deps
    for (const each of await store.open.due(now().getTime())) {
      const key = `${each.owner} ${each.pool}`
      const ofTenant = [...this.#atWork.keys()].filter((other) => other.startsWith(`${each.owner} `))
      if (this.#atWork.size >= MOST.pools || ofTenant.length >= MOST.poolsOfTenant || this.#atWork.has(key)) continue
      const claimed = await store.open.claim(each, now().getTime() + CLAIM_MS)
      if (!claimed) continue
      const driving = this.#drive(claimed).catch((cause: unknown) => {
        log.warn('the calls of a pool could not be taken further; it is tried again', { pool: each.pool, cause })
      })
      this.#atWork.set(
        key,
        driving.finally(() => this.#atWork.delete(key)),
      )
    }
  }

  /** Resolves when this process works on no pool. */
  async settled(): Promise<void> {
    await Promise.all(this.#atWork.values())
  }

  async #drive(claimed: ClaimedPool): Promise<void> {
    const { store, openVendor } = this.#deps
    const { owner: tenant, pool: id, instance } = claimed
    const pool: Pool = { tenant, id, vendor: await openVendor(tenant, instance) }
    await this.#lookAtSent(pool)
    const againMs = await this.#send(pool)
    const times = (await store.sent(tenant, id)).map(({ look_at_ms }) => look_at_ms)
    if (againMs !== undefined) times.push(againMs)
    await store.open.release(claimed, times.length > 0 ? Math.min(...times) : undefined)
  }

  async #lookAtSent({ tenant, id, vendor }: Pool): Promise<void> {
    const { store } = this.#deps
    const sent = await store.sent(tenant, id)
    if (sent.length === 0) return
    const parcels = new Map((await store.parcels(tenant, id)).map((parcel) => [nameOf(parcel), parcel]))
    for (const batch of sent) {
      const own = batch.parcels.flatMap((name) => parcels.get(name) ?? [])
      await this.#look({ tenant, id, vendor }, { batch, own })
    }
  }

  async #look({ tenant, vendor }: Pool, { batch, own }: Sent): Promise<void> {
    const { store, now, log } = this.#deps
    const nowMs = now().getTime()
    const isOver = own.every((parcel) => this.#isOver(parcel))
    if (!vendor || own.length === 0) return this.#keep(tenant, { batch, own, answers: new Map() })
    if (nowMs < batch.look_at_ms && !isOver) return
    // A failure does not matter: the batch has ended, or will expire.
    if (isOver && batch.vendor_id !== null) await vendor.cancel(batch.vendor_id).catch(() => {})
    const news = await newsOf(batch, { vendor, nowMs, log })
    const endMs = Math.max(...own.map(({ until_ms }) => until_ms))
    const look_at_ms = Math.min(
      nowMs + pauseAfter(nowMs - batch.at_ms),
      endMs > nowMs ? endMs : Number.POSITIVE_INFINITY,
    )
    if (news === 'waits') return store.changeSent(tenant, batch, { look_at_ms })
    if (news === 'lost') return store.changeSent(tenant, batch, { state: 'returned' })
    if (news === 'no_room') return this.#refuse(tenant, batch)
    if ('found' in news) return store.changeSent(tenant, batch, { vendor_id: news.found })
    if (news.answers.size === 0 && !isOver && batch.count > FEW) return this.#divide(tenant, batch)
    await this.#keep(tenant, { batch, own, answers: news.answers })
  }

  async #keep(tenant: TenantId, { batch, own, answers }: Sent & { answers: Answers }): Promise<void> {
    await this.#answer(tenant, own, answers)
    await this.#deps.store.changeSent(tenant, batch, { state: 'answered' })
  }

  async #answer(tenant: TenantId, parcels: readonly Parcel[], answers: Answers): Promise<void> {
    const { store, onAnswered } = this.#deps
    for (let at = 0; at < parcels.length; at += DOCUMENTS_TOGETHER) {
      const some = parcels.slice(at, at + DOCUMENTS_TOGETHER)
      await inSlices(some, DOCUMENTS_AT_ONCE, async (parcel) => {
        await store.addAnswers(tenant, parcel, { ...parcel, answers: answersTo(parcel.calls, answers) })
      })
      await store.removeParcels(tenant, some)
      await onAnswered(tenant, some)
    }
  }

  /** Sends the waiting calls once they are gathered. Returns when to look again, if calls still wait. */
  async #send(pool: Pool): Promise<number | undefined> {
    const { store, now } = this.#deps
    const { tenant, id, vendor } = pool
    const [recent, nowMs] = [await store.recentlySent(tenant, id), now().getTime()]
    const last = recent.toSorted((a, b) => b.at_ms - a.at_ms)[0]
    const taken = new Set((await store.sent(tenant, id)).flatMap(({ parcels }) => parcels))
    const waiting = (await store.parcels(tenant, id)).filter((parcel) => !taken.has(nameOf(parcel)))
    const [late, ready] = divided(waiting, (parcel) => !vendor || this.#isOver(parcel))
    if (late.length > 0) await this.#answer(tenant, late, new Map())
    if (!vendor || ready.length === 0) return undefined
    const dueMs = Math.max(gatheredAt(ready), last?.state === 'refused' ? last.at_ms + PAUSE.most : 0)
    if (nowMs < dueMs) return Math.min(dueMs, ...ready.map(({ until_ms }) => until_ms))
    if (await this.#hasSpentAll(tenant)) {
      await this.#answer(tenant, ready, new Map())
      return undefined
    }
    const most = last?.next_most ?? MOST.calls
    let number = 1 + (recent[0]?.number ?? -1)
    for (const parcels of batchesOf(ready, most)) {
      const isSent = await this.#submit({ ...pool, vendor }, { parcels, number: number++, most })
      if (!isSent) return nowMs + PAUSE.least
    }
    return undefined
  }

  /**
   * Stores a batch and its calls, then sends it. So only one process sends it, and if that dies, the next one searches
   * for it at the vendor. Returns whether another batch may be sent.
   */
  async #submit({ tenant, id, vendor }: Opened, { parcels, number, most }: Sending): Promise<boolean> {
    const { store, now, log } = this.#deps
    const calls = (await inSlices(parcels, DOCUMENTS_AT_ONCE, (each) => store.callsOf(tenant, each))).flat()
    const [at_ms, first] = [now().getTime(), calls[0]?.id ?? '']
    const batch: PoolBatch = {
      ...{
        pool: id,
        number,
        state: 'open',
        mark: newId('pool'),
        vendor_id: null,
        at_ms,
        look_at_ms: at_ms + SUBMIT_MS,
      },
      ...{ parcels: parcels.map(nameOf), count: calls.length, first, next_most: Math.min(MOST.calls, 2 * most) },
      expires_ms: Math.max(...parcels.map(({ expires_ms }) => expires_ms)),
    }
    if (!(await store.addSent(tenant, batch))) return false
    try {
      const vendor_id = await vendor.submit(calls, batch.mark)
      await store.changeSent(tenant, batch, { vendor_id, look_at_ms: now().getTime() + PAUSE.least })
      return true
    } catch (cause) {
      log.warn('calls could not be sent to the batch of a vendor', { mark: batch.mark, calls: calls.length, cause })
      if (hasKind(cause, 'rate_limit')) await this.#refuse(tenant, batch)
      else if (hasKind(cause, 'invalid_request') && batch.count > FEW) await this.#divide(tenant, batch)
      else if (REFUSALS.some((kind) => hasKind(cause, kind)))
        await this.#keep(tenant, { batch, own: parcels, answers: new Map() })
      return false // In all other cases the vendor may have the batch: the next look asks for it.
    }
  }

  /** Whether the budget is used up. Then no batch is sent, because it would have to be paid; the budget also refuses live calls. */
  #hasSpentAll(tenant: TenantId): Promise<boolean> {
    return this.#deps.assertBudget(tenant).then(
      () => false,
      (cause: unknown) => {
        if (hasKind(cause, 'rate_limit')) return true
        throw cause
      },
    )
  }

  /** Called when the vendor has no room: fewer calls are sent later. */
  #refuse(tenant: TenantId, batch: PoolBatch): Promise<void> {
    const [at_ms, next_most] = [this.#deps.now().getTime(), Math.ceil(batch.count / 2)]
    return this.#deps.store.changeSent(tenant, batch, { state: 'refused', at_ms, next_most })
  }

  /** Called when some call in the batch is wrong: its calls are sent again in smaller batches, so that the valid ones need not be sent live. */
  #divide(tenant: TenantId, batch: PoolBatch): Promise<void> {
    const [at_ms, next_most] = [this.#deps.now().getTime(), Math.ceil(batch.count / 10)]
    return this.#deps.store.changeSent(tenant, batch, { state: 'returned', at_ms, next_most })
  }

  #isOver({ until_ms }: Parcel): boolean {
    return until_ms <= this.#deps.now().getTime()
  }
}

const REFUSALS = ['invalid_request', 'upstream', 'not_found'] as const

type Answers = ReadonlyMap<string, BatchAnswer>
type Sent = { batch: PoolBatch; own: readonly Parcel[] }
type Opened = Pool & { vendor: VendorBatches }
type Sending = { parcels: readonly Parcel[]; number: number; most: number }

const divided = <T>(all: readonly T[], isFirst: (each: T) => boolean): [T[], T[]] => [
  all.filter(isFirst),
  all.filter((each) => !isFirst(each)),
]

/** The time at which gathering ends: when a batch is full, no call has come for a while, or the first one has waited for long. */
function gatheredAt(parcels: readonly Parcel[]): number {
  const sum = (of: (parcel: Parcel) => number) => parcels.reduce((total, parcel) => total + of(parcel), 0)
  if (sum(({ calls }) => calls.length) >= MOST.calls || sum(({ bytes }) => bytes) >= MOST.bytes) return 0
  const [oldest, newest] = [parcels[0]?.entered_ms ?? 0, parcels.at(-1)?.entered_ms ?? 0]
  return Math.min(oldest + GATHER.most, newest + GATHER.quiet)
}

/** Divides parcels, in order, into batches of the allowed size. */
function batchesOf(parcels: readonly Parcel[], mostCalls: number): Parcel[][] {
  const batches: Parcel[][] = []
  let [calls, bytes] = [Number.POSITIVE_INFINITY, 0]
  for (const parcel of parcels) {
    calls += parcel.calls.length
    bytes += parcel.bytes
    if (calls <= mostCalls && bytes <= MOST.bytes) batches.at(-1)?.push(parcel)
    else {
      batches.push([parcel])
      calls = parcel.calls.length
      bytes = parcel.bytes
    }
  }
  return batches
}

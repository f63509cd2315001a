import type { JsonObject } from '../../../../kernel/events.ts'
import type { TenantId } from '../../../../kernel/tenant.ts'
import type { Collection, CollectionSpec, Fields, Scalar, Store } from '../../../../platform/store/port.ts'
import type { BatchAnswer, BatchCall } from '../port.ts'
import { OpenPools } from './open-pools.ts'

/** The waves that each owner has given to the pool, or, in an earlier version, has sent itself. */
export const BATCH_WAVES: CollectionSpec = {
  name: 'flow_batch_waves',
  key: ['batch_id', 'chunk', 'wave'],
  order: { within: ['batch_id', 'chunk'], by: ['wave'], direction: 'ascending' },
  filters: ['state'],
  expiresBy: 'expires_ms',
}

/** The answers of vendors and of tools to calls; `answer` is JSON. */
export const BATCH_ANSWERS: CollectionSpec = {
  name: 'flow_batch_answers',
  key: ['batch_id', 'chunk', 'call'],
  order: { within: ['batch_id', 'chunk'], by: ['call'], direction: 'ascending' },
  expiresBy: 'expires_ms',
}

/** The calls of a wave while they wait or are at the vendor; the body contains their JSON. */
export const POOL_PARCELS: CollectionSpec = {
  name: 'pool_parcels',
  key: ['batch_id', 'chunk', 'wave'],
  order: { within: ['pool'], by: ['entered_ms', 'batch_id', 'chunk', 'wave'], direction: 'ascending' },
  hasBody: true,
  expiresBy: 'expires_ms',
}

/** The batches that were sent to vendors, by the number in their pool. */
export const POOL_BATCHES: CollectionSpec = {
  name: 'pool_batches',
  key: ['pool', 'number'],
  order: { within: ['pool'], by: ['number'], direction: 'descending' },
  filters: ['state'],
  expiresBy: 'expires_ms',
}

/** The owner of calls: a chunk of a batch. */
export type CallOwner = { batch_id: string; chunk: number }

export type WaveKey = CallOwner & { wave: number }

/**
 * Calls that an owner has given to the pool together. An owner numbers its waves; no number is used twice. `answered`: every call has an answer in
 * the store. `submitting` and `submitted`: an earlier version has sent the wave as a separate batch.
 */
export type Wave = WaveKey & {
  state: 'pooled' | 'answered' | 'submitting' | 'submitted'
  vendor_id: string | null
  at_ms: number
  calls: readonly string[]
}

/** The name of a wave's parcel, and the text that marks a wave of an earlier version at the vendor. */
export const nameOf = ({ batch_id, chunk, wave }: WaveKey): string => `${batch_id}-${chunk}-${wave}`

/** Calls of one wave, whose instance, path and model are those of their pool. After `until_ms` they no longer wait for a vendor. */
export type Parcel = WaveKey & {
  pool: string
  instance: string
  calls: readonly string[]
  bytes: number
  entered_ms: number
  until_ms: number
  expires_ms: number
}

/**
 * A batch that is sent to the vendor: it is `open` from before it is sent until its calls have answers (`answered`), or wait again because the vendor
 * had no room (`refused`) or has not received it (`returned`). `vendor_id` is `null` until the vendor has confirmed it. `next_most`: the most calls
 * of the next batch.
 */
export type PoolBatch = {
  pool: string
  number: number
  state: 'open' | 'answered' | 'refused' | 'returned'
  mark: string
  vendor_id: string | null
  at_ms: number
  look_at_ms: number
  parcels: readonly string[]
  count: number
  first: string
  next_most: number
  expires_ms: number
}

const PAGE = 1_000
const RECENT = 8

/** Stores the calls that wait for vendors' batches, and their answers (D58). Every method throws `unavailable` when the store does not answer. */
export class PoolStore {
  readonly #waves: Collection
  readonly #answers: Collection
  readonly #parcels: Collection
  readonly #sent: Collection
  readonly open: OpenPools

  constructor(store: Store) {
    this.#waves = store.collection(BATCH_WAVES)
    this.#answers = store.collection(BATCH_ANSWERS)
    this.#parcels = store.collection(POOL_PARCELS)
    this.#sent = store.collection(POOL_BATCHES)
    this.open = new OpenPools(store)
  }

  /** The waves of an owner, in their order. */
  async waves(tenant: TenantId, { batch_id, chunk }: CallOwner): Promise<Wave[]> {
    const found = await this.#waves.page(tenant, { where: { batch_id, chunk }, limit: PAGE })
    return found.map(({ doc: { expires_ms: _expires, ...wave } }) => wave as Wave)
  }

  /** Returns `false` when there is a wave of this number. */
  addWave(tenant: TenantId, wave: Wave, expires_ms: number): Promise<boolean> {
    return this.#waves.insert(tenant, { ...wave, expires_ms })
  }

  /** Returns `false` when the wave is in another state by now. */
  async changeWave(tenant: TenantId, { state, ...wave }: Wave, set: Partial<Wave>): Promise<boolean> {
    return (await this.#waves.update(tenant, { key: keyOf(wave), where: { state }, set })) !== undefined
  }

  /** Forgets a wave whose calls were lost. */
  async removeWave(tenant: TenantId, wave: WaveKey): Promise<void> {
    await this.#waves.delete(tenant, keyOf(wave))
  }

  /** Keeps answers. Stored ones are not replaced. */
  async addAnswers(tenant: TenantId, { batch_id, chunk }: CallOwner, { answers, expires_ms }: NewAnswers) {
    const docs = [...answers].map(([call, answer]) => {
      return { tenant, doc: { batch_id, chunk, call, answer: JSON.stringify(answer), expires_ms } }
    })
    await this.#answers.insertMissing(docs)
  }

  /** Keeps one answer. Returns `false` when there already was one. */
  addAnswer(
    tenant: TenantId,
    { batch_id, chunk }: CallOwner,
    { call, answer, expires_ms }: NewAnswer,
  ): Promise<boolean> {
    return this.#answers.insert(tenant, { batch_id, chunk, call, answer: JSON.stringify(answer), expires_ms })
  }

  /** The answers by the ids of their calls. */
  async answers(tenant: TenantId, { batch_id, chunk }: CallOwner): Promise<Map<string, BatchAnswer>> {
    const docs = await allPages(this.#answers, tenant, { where: { batch_id, chunk }, by: ['call'] })
    return new Map(docs.map(({ call, answer }) => [String(call), JSON.parse(String(answer)) as BatchAnswer]))
  }

  /** Adds a parcel; may be repeated. */
  async addParcel(tenant: TenantId, parcel: Parcel, json: string): Promise<void> {
    await this.#parcels.insertMissing([{ tenant, doc: parcel, body: json }])
  }

  async parcel(tenant: TenantId, wave: WaveKey): Promise<Parcel | undefined> {
    return (await this.#parcels.get(tenant, keyOf(wave)))?.doc as Parcel | undefined
  }

  /** All parcels of a pool, in the order of their arrival. */
  async parcels(tenant: TenantId, pool: string): Promise<Parcel[]> {
    const by = ['entered_ms', 'batch_id', 'chunk', 'wave']
    return (await allPages(this.#parcels, tenant, { where: { pool }, by })) as Parcel[]
  }

  /** The calls of a parcel; none when it is gone. */
  async callsOf(tenant: TenantId, wave: WaveKey): Promise<BatchCall[]> {
    const found = await this.#parcels.get(tenant, keyOf(wave))
    return JSON.parse(found?.body ?? '[]') as BatchCall[]
  }

  /** Withdraws these calls, because nothing waits for them any more. */
  async withdraw(tenant: TenantId, wave: WaveKey): Promise<Parcel | undefined> {
    const update = { key: keyOf(wave), where: {}, set: { until_ms: 0 } }
    return (await this.#parcels.update(tenant, update))?.doc as Parcel | undefined
  }

  async removeParcels(tenant: TenantId, waves: readonly WaveKey[]): Promise<void> {
    await this.#parcels.deleteMany(tenant, waves.map(keyOf))
  }

  /** The batches of a pool that are open. */
  async sent(tenant: TenantId, pool: string): Promise<PoolBatch[]> {
    const where = { pool, state: 'open' }
    return (await this.#sent.page(tenant, { where, limit: PAGE })).map(({ doc }) => doc as PoolBatch)
  }

  /** The last few batches of a pool, the greatest number first. */
  async recentlySent(tenant: TenantId, pool: string): Promise<PoolBatch[]> {
    const found = await this.#sent.page(tenant, { where: { pool }, limit: RECENT })
    return found.map(({ doc }) => doc as PoolBatch)
  }

  /** Returns `false` when there is one of this number. */
  addSent(tenant: TenantId, batch: PoolBatch): Promise<boolean> {
    return this.#sent.insert(tenant, batch)
  }

  /** Changes an open batch. */
  async changeSent(tenant: TenantId, { pool, number }: PoolBatch, set: Partial<PoolBatch>): Promise<void> {
    await this.#sent.update(tenant, { key: { pool, number }, where: { state: 'open' }, set })
  }
}

type NewAnswers = { answers: ReadonlyMap<string, BatchAnswer>; expires_ms: number }
type NewAnswer = { call: string; answer: BatchAnswer; expires_ms: number }

const keyOf = ({ batch_id, chunk, wave }: WaveKey): Fields => ({ batch_id, chunk, wave })

type All = { where: Fields; by: readonly string[] }

async function allPages(collection: Collection, tenant: TenantId, { where, by }: All): Promise<JsonObject[]> {
  const docs: JsonObject[] = []
  for (let after: Scalar[] | undefined; ; ) {
    const page = await collection.page(tenant, { where, after, limit: PAGE })
    docs.push(...page.map(({ doc }) => doc))
    const last = page.at(-1)?.doc
    if (!last || page.length < PAGE) return docs
    after = by.map((field) => last[field] as Scalar)
  }
}

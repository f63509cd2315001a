import { withDeadline } from '../../kernel/async/deadline.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { storeUnavailable } from '../../platform/store/unavailable.ts'
import { renderRun } from '../engine/transcript.ts'
import type { MemorySource } from '../tools/port.ts'
import { keepNewest, type PastRun, renderBackground } from './background.ts'
import type { FinishedRun, Ledger } from './store/ledger.ts'
import type { MemoryEntries } from './store/memory-entries.ts'

export type LineStore = { ledger: Ledger; memories: MemoryEntries }

/** How much of a customer's history the background holds, and how long reading it may take. */
export type HistoryLimits = { entries: number; chars: number; readMs?: number }

export type CustomerIdentity = { tenant: TenantId; customerId: string }

/** How many ledger entries Dream reads. */
const DREAM_ENTRIES = 200
const MEMORIES = 50
/** If the store is slow, a run begins without its background after this time, and so within 3 s in total. */
const READ_MS = 2_800

/**
 * One customer's line: the history that runs start from, and the record of new runs (api.md "Per-customer line"). It keeps the
 * entries that it has read and the background needs, and reads only newer ones, which other processes may have written.
 */
export class CustomerLine implements MemorySource {
  readonly #store: LineStore
  readonly #limits: HistoryLimits
  readonly #customer: CustomerIdentity
  /** Oldest first. */
  #runs: readonly PastRun[] = []

  constructor(store: LineStore, limits: HistoryLimits, customer: CustomerIdentity) {
    this.#store = store
    this.#limits = limits
    this.#customer = customer
  }

  /** Renders the ledger and the memory entries as they are now. Throws `unavailable` when the store is not fast enough. */
  async background(): Promise<string> {
    const { tenant, customerId } = this.#customer
    const { chars, readMs = READ_MS } = this.#limits
    const reading = Promise.all([this.#readNewRuns(), this.#store.memories.last(tenant, customerId, MEMORIES)])
    const [, memories] = await withDeadline(reading, readMs, () => storeUnavailable('too slow'))
    const contents = memories.map(({ content }) => content).reverse()
    return renderBackground({ runs: this.#runs, memories: contents }, chars)
  }

  /** Appends a run to the ledger. Throws `unavailable` like `Ledger.append`. */
  async record(run: FinishedRun): Promise<void> {
    await this.#store.ledger.append(this.#customer.tenant, this.#customer.customerId, run)
  }

  /** Renders the newest entries of the ledger for Dream, oldest first. */
  async history(): Promise<string> {
    const { tenant, customerId } = this.#customer
    const entries = await this.#store.ledger.last(tenant, customerId, DREAM_ENTRIES)
    return entries.reverse().map(renderRun).join('\n')
  }

  async keep(entries: readonly string[]): Promise<void> {
    const { tenant, customerId } = this.#customer
    for (const content of entries) await this.#store.memories.add(tenant, customerId, { content })
  }

  async #readNewRuns(): Promise<void> {
    const { tenant, customerId } = this.#customer
    const { entries: maxRuns, chars } = this.#limits
    if (maxRuns === 0) return
    const readLast = (count: number) => this.#store.ledger.last(tenant, customerId, count)
    const knownSeq = this.#runs.at(-1)?.seq ?? 0
    const newest = await readLast(knownSeq === 0 ? maxRuns : 1)
    const missing = Math.min(maxRuns, (newest[0]?.seq ?? 0) - knownSeq)
    const found = missing > newest.length ? await readLast(missing) : newest
    // Another run may have read the same entries meanwhile.
    const lastSeq = this.#runs.at(-1)?.seq ?? 0
    const fresh = found.filter(({ seq }) => seq > lastSeq).reverse()
    if (fresh.length > 0) this.#runs = keepNewest([...this.#runs, ...fresh].slice(-maxRuns), chars)
  }
}

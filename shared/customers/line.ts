import type { FinishedRun, Ledger, LedgerEntry } from '../store/ledger.ts'
import type { MemoryEntries } from '../store/memory-entries.ts'
import type { TenantId } from '../tenant.ts'
import type { Recall } from '../tools/port.ts'
import { type PastRun, renderBackground } from './background.ts'

export type LineStore = { ledger: Ledger; memories: MemoryEntries }

/** How much of a customer's history a run is told. */
export type HistoryLimits = { entries: number; chars: number }

export type CustomerIdentity = { tenant: TenantId; customerId: string }

/** What Dream reads of the ledger. */
const DREAM_ENTRIES = 200
const MEMORIES = 50

/**
 * One customer's line: what is known of the customer from before, and the record of what comes (api.md "Per-customer line").
 * It keeps what it has read, as far as a run is ever told of it, and reads what is new: other processes may write as well.
 */
export class CustomerLine implements Recall {
  readonly #store: LineStore
  readonly #limits: HistoryLimits
  readonly #who: CustomerIdentity
  /** Oldest first. */
  #runs: readonly PastRun[] = []

  constructor(store: LineStore, limits: HistoryLimits, who: CustomerIdentity) {
    this.#store = store
    this.#limits = limits
    this.#who = who
  }

  /** The ledger and the memories as they are now. Throws `unavailable`. */
  async background(): Promise<string> {
    const { tenant, customerId } = this.#who
    const [, memories] = await Promise.all([this.#catchUp(), this.#store.memories.last(tenant, customerId, MEMORIES)])
    const contents = memories.map(({ content }) => content).reverse()
    return renderBackground({ runs: this.#runs, memories: contents }, this.#limits.chars)
  }

  async record(run: FinishedRun): Promise<void> {
    await this.#store.ledger.append(this.#who.tenant, this.#who.customerId, run)
  }

  async history(): Promise<string> {
    const { tenant, customerId } = this.#who
    const entries = await this.#store.ledger.last(tenant, customerId, DREAM_ENTRIES)
    return entries
      .reverse()
      .map(({ timestamp, input, output }) => `[${timestamp}] customer: ${input}\n[${timestamp}] answer: ${output}`)
      .join('\n')
  }

  async keep(entries: readonly string[]): Promise<void> {
    const { tenant, customerId } = this.#who
    for (const content of entries) await this.#store.memories.add(tenant, customerId, { content })
  }

  async #catchUp(): Promise<void> {
    const { tenant, customerId } = this.#who
    const { entries: wanted, chars } = this.#limits
    if (wanted === 0) return
    const known = this.#runs.at(-1)?.seq ?? 0
    const [newest] = await this.#store.ledger.last(tenant, customerId, 1)
    const missing = Math.min(wanted, (newest?.seq ?? 0) - known)
    if (!newest || missing <= 0) return
    const found = missing === 1 ? [newest] : await this.#store.ledger.last(tenant, customerId, missing)
    const fresh = found.filter(({ seq }) => seq > known).map((entry) => shorten(entry, chars))
    this.#runs = [...this.#runs, ...fresh.reverse()].slice(-wanted)
  }
}

/** No run is told more of an entry than its end. */
const shorten = ({ seq, timestamp, input, output }: LedgerEntry, chars: number): PastRun => ({
  seq,
  timestamp,
  input: input.slice(-chars),
  output: output.slice(-chars),
})

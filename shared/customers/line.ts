import type { FinishedRun, Ledger } from '../store/ledger.ts'
import type { MemoryEntries } from '../store/memory-entries.ts'
import { storeUnavailable } from '../store/unavailable.ts'
import type { TenantId } from '../tenant.ts'
import type { MemorySource } from '../tools/port.ts'
import { type PastRun, renderBackground } from './background.ts'

export type LineStore = { ledger: Ledger; memories: MemoryEntries }

/** How much of a customer's history a run is told, and how long it waits for it. */
export type HistoryLimits = { entries: number; chars: number; readMs?: number }

export type CustomerIdentity = { tenant: TenantId; customerId: string }

/** What Dream reads of the ledger. */
const DREAM_ENTRIES = 200
const MEMORIES = 50
/** A run begins within 3 s, with its background or without (reliability.md §2.2, M). */
const READ_MS = 2_800

/**
 * One customer's line: what is known of the customer from before, and the record of what comes (api.md "Per-customer line").
 * It keeps what it has read, as far as a run is ever told of it, and reads what is new: other processes may write as well.
 */
export class CustomerLine implements MemorySource {
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

  /** The ledger and the memories as they are now. Throws `unavailable` when the store does not tell them in time. */
  async background(): Promise<string> {
    const { tenant, customerId } = this.#who
    const reading = Promise.all([this.#catchUp(), this.#store.memories.last(tenant, customerId, MEMORIES)])
    const [, memories] = await inTime(reading, this.#limits.readMs ?? READ_MS)
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
    const last = (count: number) => this.#store.ledger.last(tenant, customerId, count)
    const looked = await last(known === 0 ? wanted : 1)
    const missing = Math.min(wanted, (looked[0]?.seq ?? 0) - known)
    const found = missing > looked.length ? await last(missing) : looked
    // Another run may have caught up meanwhile.
    const newestKnown = this.#runs.at(-1)?.seq ?? 0
    const fresh = found.filter(({ seq }) => seq > newestKnown).reverse()
    if (fresh.length > 0) this.#runs = newestOf([...this.#runs, ...fresh].slice(-wanted), chars)
  }
}

function inTime<T>(reading: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(storeUnavailable('too slow')), ms)
  return Promise.race([reading, late.promise]).finally(() => clearTimeout(timer))
}

/** Of these runs, oldest first, what can be told in so many characters: their ends. The last one stays in any case, for its number. */
function newestOf(runs: readonly PastRun[], chars: number): PastRun[] {
  const kept: PastRun[] = []
  let room = chars
  for (const { seq, timestamp, input, output } of runs.toReversed()) {
    if (room <= 0 && kept.length > 0) break
    const end = endOf(output, room)
    const begin = endOf(input, room - end.length)
    room -= begin.length + end.length
    kept.unshift({ seq, timestamp, input: begin, output: end })
  }
  return kept
}

/** A string of its own: a slice would hold on to all of the text that it is of. */
const endOf = (text: string, chars: number): string => (chars <= 0 ? '' : structuredClone(text.slice(-chars)))

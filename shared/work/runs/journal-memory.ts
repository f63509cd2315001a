import type { JournalBudget } from '../../cluster/journal/journal.ts'
import type { TenantId } from '../../kernel/tenant.ts'

/**
 * The bytes in a process's journals, or the events that it still has to record, by tenant. While there are too many, tenants above an equal share
 * lose theirs first, so that large answers of one tenant do not push out the events of others.
 */
export class JournalMemory {
  readonly #maxBytes: number
  readonly #used = new Map<TenantId, number>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get isExceeded(): boolean {
    return this.#bytes > this.#maxBytes
  }

  usedBy(tenant: TenantId): number {
    return this.#used.get(tenant) ?? 0
  }

  /** Whether a tenant holds more than an equal share while all journals together hold too much. */
  mustGiveWay(tenant: TenantId): boolean {
    return this.isExceeded && this.usedBy(tenant) > this.#maxBytes / this.#used.size
  }

  budgetOf(tenant: TenantId): JournalBudget {
    return new TenantBudget(tenant, this)
  }

  add(tenant: TenantId, bytes: number): void {
    this.#bytes += bytes
    const used = this.usedBy(tenant) + bytes
    if (used > 0) this.#used.set(tenant, used)
    else this.#used.delete(tenant)
  }
}

/** A class, because each run has two instances until it is forgotten, and closures would take three times the memory. */
class TenantBudget implements JournalBudget {
  readonly #tenant: TenantId
  readonly #memory: JournalMemory

  constructor(tenant: TenantId, memory: JournalMemory) {
    this.#tenant = tenant
    this.#memory = memory
  }

  add(bytes: number): void {
    this.#memory.add(this.#tenant, bytes)
  }

  isExceeded(): boolean {
    return this.#memory.mustGiveWay(this.#tenant)
  }
}

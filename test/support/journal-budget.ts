import type { JournalBudget } from '../../shared/cluster/journal/journal.ts'

/** The bytes of journals that share one limit, without tenants. */
export function newBudget(maxBytes = 64 * 1024 * 1024, bytes = 0): JournalBudget & { readonly bytes: number } {
  const budget = {
    bytes,
    add: (more: number) => void (budget.bytes += more),
    isExceeded: () => budget.bytes > maxBytes,
  }
  return budget
}

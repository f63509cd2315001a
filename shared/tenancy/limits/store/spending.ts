import type { CollectionSpec, Store } from '../../../platform/store/port.ts'
import { replaceDoc } from '../../../platform/store/replace.ts'
import { addSpent, NOTHING_SPENT, type SpendingStore } from '../port.ts'

/** The spending of each process for a tenant in a day. One document has one writer. */
export const SPENDING: CollectionSpec = {
  name: 'spending',
  key: ['day', 'process'],
  order: { within: ['day'], by: ['process'], direction: 'ascending' },
  ttlSecs: 40 * 24 * 3_600,
}

const PAGE = 1_000

export function createSpendingStore(store: Store): SpendingStore {
  const spending = store.collection(SPENDING)
  return {
    async put(tenant, { day, process, spent }) {
      const { tokens, costUsd: cost_usd } = spent
      await replaceDoc(spending, tenant, { key: { day, process }, change: () => ({ tokens, cost_usd }) })
    },
    async ofOthers(tenant, { day, process }) {
      let sum = NOTHING_SPENT
      let after: string[] | undefined
      do {
        const page = await spending.page(tenant, { where: { day }, after, limit: PAGE })
        for (const { doc } of page) {
          if (doc['process'] === process) continue
          sum = addSpent(sum, { tokens: Number(doc['tokens']), costUsd: Number(doc['cost_usd']) })
        }
        after = page.length === PAGE ? [String(page.at(-1)?.doc['process'])] : undefined
      } while (after)
      return sum
    },
  }
}

import { createCache } from '../../../kernel/cache.ts'
import type { CollectionSpec, Store } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import { addSpent, NOTHING_SPENT, type SpendingStore } from '../port.ts'

/**
 * The spending of each process for a tenant in a day. One document has one writer. An action that is done once in the
 * period is noted as a process without spending.
 */
export const SPENDING: CollectionSpec = {
  name: 'spending',
  key: ['day', 'process'],
  order: { within: ['day'], by: ['process'], direction: 'ascending' },
  ttlSecs: 40 * 24 * 3_600,
}

const PAGE = 1_000
const MAX_REMEMBERED = 10_000

export function createSpendingStore(store: Store): SpendingStore {
  const spending = store.collection(SPENDING)
  /** The versions that this process has written last. */
  const versions = createCache<string, number>(MAX_REMEMBERED)
  return {
    async put(tenant, { day, process, spent }) {
      const key = `${tenant} ${day} ${process}`
      const doc = { day, process, tokens: spent.tokens, cost_usd: spent.costUsd }
      await untilFirst(async () => {
        const version = versions.get(key) ?? (await spending.get(tenant, { day, process }))?.version ?? 0
        versions.delete(key) // A failed write may have been carried out.
        const isStored =
          version === 0 ? spending.insert(tenant, doc) : spending.replaceIfVersion(tenant, { doc, version })
        if (!(await isStored)) return OVERTAKEN
        versions.set(key, version + 1)
      })
    },
    async once(tenant, { day, what: process }, act) {
      if (await spending.get(tenant, { day, process })) return false
      await act()
      return spending.insert(tenant, { day, process, tokens: 0, cost_usd: 0 })
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

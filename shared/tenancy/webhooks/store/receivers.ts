import type { Collection, CollectionSpec } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import type { ReceiverState, ReceiverStore } from '../port.ts'

/** The failures of a tenant's receivers, each until it accepts a message again or nothing was sent to it for a month. */
export const WEBHOOK_RECEIVERS: CollectionSpec = {
  name: 'webhook_receivers',
  key: ['webhook'],
  expiresBy: 'expires_ms',
}

type ReceiverDoc = {
  webhook: string
  failures: number
  rests_until_ms: number
  webhook_updated_at: string
  expires_ms: number
}

const KEPT_MS = 30 * 24 * 3_600_000

export function createReceiverStore(receivers: Collection, now: () => number): ReceiverStore {
  return {
    async get(tenant, webhook) {
      const found = await receivers.get(tenant, { webhook })
      return found && toState(found.doc as ReceiverDoc)
    },
    change: (tenant, webhook, change) =>
      untilFirst(async () => {
        const found = await receivers.get(tenant, { webhook })
        const state = change(found && toState(found.doc as ReceiverDoc))
        const doc = toDoc(webhook, state, now() + KEPT_MS)
        const isStored = found
          ? await receivers.replaceIfVersion(tenant, { doc, version: found.version })
          : await receivers.insert(tenant, doc)
        return isStored ? state : OVERTAKEN
      }),
    async forget(tenant, webhook) {
      await receivers.delete(tenant, { webhook })
    },
  }
}

const toState = ({ failures, rests_until_ms, webhook_updated_at }: ReceiverDoc): ReceiverState => ({
  failures,
  restsUntilMs: rests_until_ms,
  webhookUpdatedAt: webhook_updated_at,
})

const toDoc = (webhook: string, state: ReceiverState, expires_ms: number): ReceiverDoc => ({
  webhook,
  failures: state.failures,
  rests_until_ms: state.restsUntilMs,
  webhook_updated_at: state.webhookUpdatedAt,
  expires_ms,
})

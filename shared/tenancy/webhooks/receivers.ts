import { createCache } from '../../kernel/cache.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import type { StoredWebhook } from '../tenant-config/config.ts'
import type { ReceiverState, ReceiverStore } from './port.ts'

type Webhook = Pick<StoredWebhook, 'id' | 'updated_at'>

/** Failed attempts in a row after which a receiver rests. */
const FAILURES_BEFORE_REST = 3
/** The rests after the third failure, after the fourth and so on; the last one is repeated. */
const RESTS_MS: readonly number[] = [60_000, 120_000, 240_000, 480_000, 600_000]
/** How many attempts for one webhook a process makes at a time. */
export const MAX_AT_RECEIVER = 4
/** How long this process may use outdated knowledge of a receiver. */
const KNOWN_FOR_MS = 2_000
const MAX_KNOWN = 10_000

type Known = { state: ReceiverState | undefined }

/** Decides how many messages a receiver gets at a time: none while it rests (D10.4), one when it may be back, otherwise a few. */
export class Receivers {
  readonly #store: ReceiverStore
  readonly #known = createCache<string, Known>(MAX_KNOWN, { ttl: KNOWN_FOR_MS })

  constructor(store: ReceiverStore) {
    this.#store = store
  }

  /** How many attempts may run at the same time. */
  async allowance(tenant: TenantId, webhook: Webhook, nowMs: number): Promise<number> {
    const known = this.#known.get(webhook.id) ?? { state: await this.#store.get(tenant, webhook.id) }
    this.#known.set(webhook.id, known, { noUpdateTTL: true })
    const state = currentState(known.state, webhook)
    if (state === undefined || state.failures < FAILURES_BEFORE_REST) return MAX_AT_RECEIVER
    return nowMs < state.restsUntilMs ? 0 : 1
  }

  async noteSuccess(tenant: TenantId, webhook: Webhook): Promise<void> {
    const known = this.#known.get(webhook.id)
    if (known && !known.state) return
    this.#known.set(webhook.id, { state: undefined })
    await this.#store.forget(tenant, webhook.id)
  }

  /** Returns whether a rest of the receiver begins with this failure. */
  async noteFailure(tenant: TenantId, webhook: Webhook, nowMs: number): Promise<boolean> {
    let wasResting = false
    const state = await this.#store.change(tenant, webhook.id, (before) => {
      wasResting = restEnd(before, webhook, nowMs) !== undefined
      return afterFailure(before, webhook, nowMs)
    })
    this.#known.set(webhook.id, { state })
    return !wasResting && nowMs < state.restsUntilMs
  }
}

/** When the rest of a webhook's receiver ends, in milliseconds since 1970; `undefined` when it is not resting. */
export function restEnd(state: ReceiverState | undefined, webhook: Webhook, nowMs: number): number | undefined {
  const current = currentState(state, webhook)
  return current && nowMs < current.restsUntilMs ? current.restsUntilMs : undefined
}

/** A webhook that was changed after its failures starts without them. */
const currentState = (state: ReceiverState | undefined, { updated_at }: Webhook): ReceiverState | undefined =>
  state?.webhookUpdatedAt === updated_at ? state : undefined

function afterFailure(before: ReceiverState | undefined, webhook: Webhook, nowMs: number): ReceiverState {
  const { failures: earlier, restsUntilMs } = currentState(before, webhook) ?? { failures: 0, restsUntilMs: 0 }
  const webhookUpdatedAt = webhook.updated_at
  // Failures of attempts that ran at the same time count as one, because the receiver already rests.
  if (nowMs < restsUntilMs) return { failures: earlier, restsUntilMs, webhookUpdatedAt }
  const failures = earlier + 1
  if (failures < FAILURES_BEFORE_REST) return { failures, restsUntilMs: 0, webhookUpdatedAt }
  const rest = RESTS_MS[Math.min(failures - FAILURES_BEFORE_REST, RESTS_MS.length - 1)] ?? 0
  return { failures, restsUntilMs: nowMs + rest, webhookUpdatedAt }
}

import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { Egress } from '../net/port.ts'
import type { TenantId } from '../tenant.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import type { WebhookSettings } from '../tenant-config/webhooks.ts'
import { type AttemptResult, attemptDelivery, type Next, nextAfter } from './attempt.ts'
import type { Delivery, DeliveryStore, Due } from './port.ts'

export type DispatcherDeps = {
  configs: Pick<LiveConfigs, 'get'>
  secretsOf: WebhookSettings['secretsOf']
  store: DeliveryStore
  egress: Pick<Egress, 'request'>
  metrics: Metrics
  log: Log
  /** How often the outbox is read; one second by default. */
  everyMs?: number
  /** The waits between attempts. */
  delaysMs?: readonly number[]
}

const EVERY_MS = 1_000
/** An attempt is repeated by another process when this one has not recorded its result by then. */
const CLAIM_MS = 60_000
const MAX_AT_ONCE = 64
/** So that a receiver that does not answer delays no others. */
const MAX_PER_WEBHOOK = 4
const PAGE = 200
/** Entries that one pass reads at most: those of slow receivers may stand in front. */
const MAX_PAGES = 25

/** Sends the pending deliveries of all tenants, also those that other processes have stored. */
export class WebhookDispatcher {
  readonly #deps: DispatcherDeps
  readonly #stop = new AbortController()
  readonly #attempts = new Set<Promise<void>>()
  readonly #busy = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #pass: Promise<void> = Promise.resolve()

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#pass = this.#readOutbox()
        .catch((cause: unknown) => {
          this.#deps.log.warn('the outbox of webhooks could not be read; it is tried again', { cause })
        })
        .finally(() => {
          if (!this.#stop.signal.aborted) this.start()
        })
    }, this.#deps.everyMs ?? EVERY_MS).unref()
  }

  /** Ends the attempts that are under way; they are repeated later. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#pass
    await Promise.all(this.#attempts)
  }

  async #readOutbox(): Promise<void> {
    const nowMs = Date.now()
    let after: Due | undefined
    for (let page = 0; page < MAX_PAGES && !this.#isFull(); page++) {
      const due = await this.#deps.store.due(nowMs, { limit: PAGE, after })
      for (const entry of due) {
        if (this.#isFull()) return
        if ((this.#busy.get(entry.webhook) ?? 0) < MAX_PER_WEBHOOK) this.#begin(entry)
      }
      after = due.at(-1)
      if (due.length < PAGE) return
    }
  }

  #isFull(): boolean {
    return this.#attempts.size >= MAX_AT_ONCE || this.#stop.signal.aborted
  }

  #begin(due: Due): void {
    this.#busy.set(due.webhook, (this.#busy.get(due.webhook) ?? 0) + 1)
    const attempt = this.#attempt(due)
      .catch((cause: unknown) => {
        this.#deps.log.warn('the result of a webhook could not be recorded; it is sent again', { id: due.id, cause })
      })
      .finally(() => {
        this.#attempts.delete(attempt)
        const others = (this.#busy.get(due.webhook) ?? 1) - 1
        if (others === 0) this.#busy.delete(due.webhook)
        else this.#busy.set(due.webhook, others)
      })
    this.#attempts.add(attempt)
  }

  async #attempt(due: Due): Promise<void> {
    const { store } = this.#deps
    const claimed = await store.claim(due, Date.now() + CLAIM_MS)
    if (!claimed) return
    const delivery = await store.get(claimed.tenant, claimed.id)
    if (delivery?.status !== 'pending') return store.remove(claimed)
    const result = await this.#send(claimed.tenant, delivery)
    if (this.#stop.signal.aborted && result.status === undefined) {
      await store.postpone({ ...claimed, attempts: claimed.attempts - 1 }, Date.now())
      return
    }
    await this.#record(claimed, result)
  }

  async #send(tenant: TenantId, { webhook: id, id: messageId, body }: Delivery): Promise<AttemptResult> {
    const { configs, secretsOf, egress } = this.#deps
    const webhook = (await configs.get(tenant)).webhooks.find((each) => each.id === id)
    if (!webhook) return { error: 'The webhook was deleted.', isFinal: true }
    try {
      const secrets = secretsOf(tenant, webhook)
      return await attemptDelivery({ url: webhook.url, secrets, id: messageId, body }, egress, this.#stop.signal)
    } catch (cause) {
      return { error: cause instanceof Error ? cause.message : 'The secret cannot be read.' }
    }
  }

  async #record(due: Due, result: AttemptResult): Promise<void> {
    const { store, metrics, delaysMs } = this.#deps
    const next = nextAfter(result, due.attempts, delaysMs)
    const nowMs = Date.now()
    await store.change(due.tenant, due.id, (delivery) => recorded(delivery, { result, next, nowMs }))
    metrics.countDivided('webhook_attempts', typeof next === 'object' ? 'failed' : next)
    if (typeof next === 'object') await store.postpone(due, nowMs + next.waitMs)
    else await store.remove(due)
  }
}

type Recording = { result: AttemptResult; next: Next; nowMs: number }

function recorded(delivery: Delivery, { result, next, nowMs }: Recording): Delivery {
  const isOver = typeof next !== 'object'
  return {
    ...delivery,
    status: isOver ? next : 'pending',
    attempts: delivery.attempts + 1,
    last_attempt_at: new Date(nowMs).toISOString(),
    next_attempt_at: isOver ? null : new Date(nowMs + next.waitMs).toISOString(),
    response_status: result.status ?? null,
    error: result.error ?? null,
  }
}

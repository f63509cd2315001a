import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { TenantShares } from '../../platform/fairness/tenant-shares.ts'
import type { Egress } from '../../platform/net/port.ts'
import type { StoredWebhook } from '../tenant-config/config.ts'
import type { LiveConfigs } from '../tenant-config/live-configs.ts'
import { type AttemptResult, attemptDelivery, type Next, nextAfter } from './attempt.ts'
import type { Delivery, DeliveryStore, Due } from './port.ts'
import { MAX_AT_RECEIVER, Receivers } from './receivers.ts'
import type { WebhookSettings } from './settings.ts'

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
/** A tenant without a running attempt may exceed it, up to twice as many in total. */
const MAX_AT_ONCE = 64
const MAX_PER_TENANT = MAX_AT_ONCE / 2
const PAGE = 200
/** How many webhooks one pass visits at most, when entries that may not be attempted fill the first page. */
const MAX_VISITS = 200
/** Longer than the sum of all waits between attempts. */
const GIVEN_UP_AFTER_MS = 36 * 3_600_000
const GIVEN_UP: AttemptResult = { error: 'The receiver failed for more than 36 hours.', isFinal: true }
const DELETED: AttemptResult = { error: 'The webhook was deleted.', isFinal: true }

/** Sends the pending deliveries of all tenants, also those that other processes have stored. */
export class WebhookDispatcher {
  readonly #deps: DispatcherDeps
  readonly #stop = new AbortController()
  readonly #attempts = new Set<Promise<void>>()
  readonly #busy = new Map<string, number>()
  readonly #shares = new TenantShares({ max: MAX_AT_ONCE, maxPerTenant: MAX_PER_TENANT })
  readonly #receivers: Receivers
  /** The webhook that was looked up last. */
  #visited: string | undefined
  #timer: NodeJS.Timeout | undefined
  #pass: Promise<void> = Promise.resolve()

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.#receivers = new Receivers(deps.store.receivers)
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

  /** Ends the running attempts; they are repeated later. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#pass
    await Promise.all(this.#attempts)
  }

  async #readOutbox(): Promise<void> {
    const nowMs = Date.now()
    const due = await this.#deps.store.due(nowMs, { limit: PAGE })
    for (const entry of due) if (await this.#mayBegin(entry, nowMs)) this.#begin(entry)
    if (due.length === PAGE) await this.#visitWebhooks(nowMs)
  }

  /** Reads entries webhook by webhook, so that the many entries of one webhook do not delay those of the others. */
  async #visitWebhooks(nowMs: number): Promise<void> {
    const { store } = this.#deps
    for (let visits = 0; visits < MAX_VISITS && !this.#stop.signal.aborted; visits++) {
      const webhook = await store.webhookAfter(this.#visited)
      this.#visited = webhook
      if (webhook === undefined) return
      const due = await store.due(nowMs, { limit: MAX_AT_RECEIVER, webhook })
      for (const entry of due) if (await this.#mayBegin(entry, nowMs)) this.#begin(entry)
    }
  }

  async #mayBegin({ tenant, webhook: id }: Due, nowMs: number): Promise<boolean> {
    if (this.#stop.signal.aborted || !this.#hasRoomFor(tenant)) return false
    const busy = this.#busy.get(id) ?? 0
    if (busy >= MAX_AT_RECEIVER) return false
    const webhook = await this.#find(tenant, id)
    return webhook === undefined || busy < (await this.#receivers.allowance(tenant, webhook, nowMs))
  }

  #hasRoomFor(tenant: TenantId): boolean {
    const isNew = this.#shares.usedBy(tenant) === 0
    return !this.#shares.exceeded(tenant, 1) || (isNew && this.#attempts.size < 2 * MAX_AT_ONCE)
  }

  async #find(tenant: TenantId, id: string): Promise<StoredWebhook | undefined> {
    return (await this.#deps.configs.get(tenant)).webhooks.find((each) => each.id === id)
  }

  #begin(due: Due): void {
    this.#busy.set(due.webhook, (this.#busy.get(due.webhook) ?? 0) + 1)
    this.#shares.add(due.tenant, 1)
    const attempt = this.#attempt(due)
      .catch((cause: unknown) => {
        this.#deps.log.warn('the result of a webhook could not be recorded; it is sent again', { id: due.id, cause })
      })
      .finally(() => {
        this.#attempts.delete(attempt)
        this.#shares.add(due.tenant, -1)
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
    const webhook = await this.#find(claimed.tenant, delivery.webhook)
    const result = webhook ? await this.#send(claimed.tenant, webhook, delivery) : DELETED
    if (this.#stop.signal.aborted && result.status === undefined) {
      await store.postpone({ ...claimed, attempts: claimed.attempts - 1 }, Date.now())
      return
    }
    await this.#record(claimed, result)
    if (webhook) await this.#noteReceiver(claimed.tenant, webhook, result)
  }

  async #send(tenant: TenantId, webhook: StoredWebhook, { id, body }: Delivery): Promise<AttemptResult> {
    const { secretsOf, egress } = this.#deps
    try {
      const secrets = secretsOf(tenant, webhook)
      return await attemptDelivery({ url: webhook.url, secrets, id, body }, egress, this.#stop.signal)
    } catch (cause) {
      return { error: cause instanceof Error ? cause.message : 'The secret cannot be read.', isOurs: true }
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

  async #noteReceiver(tenant: TenantId, webhook: StoredWebhook, { error, isOurs }: AttemptResult): Promise<void> {
    if (isOurs) return
    if (error === undefined) return this.#receivers.noteSuccess(tenant, webhook)
    const nowMs = Date.now()
    if (!(await this.#receivers.noteFailure(tenant, webhook, nowMs))) return
    this.#deps.metrics.count('webhook_rests')
    while (await this.#giveUpOld(webhook.id, nowMs));
  }

  /**
   * Gives up old messages. Messages to a resting receiver are not attempted, so they would otherwise wait forever. Returns whether
   * there may be more of them.
   */
  async #giveUpOld(webhook: string, nowMs: number): Promise<boolean> {
    const { store } = this.#deps
    let givenUp = 0
    for (const due of await store.due(nowMs, { limit: PAGE, webhook })) {
      const delivery = await store.get(due.tenant, due.id)
      const isOld = delivery && Date.parse(delivery.created_at) < nowMs - GIVEN_UP_AFTER_MS
      if (!isOld || this.#stop.signal.aborted) continue
      const claimed = await store.claim(due, Date.now() + CLAIM_MS)
      if (!claimed) continue
      await this.#record(claimed, GIVEN_UP)
      givenUp++
    }
    return givenUp === PAGE
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

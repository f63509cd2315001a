import { randomBytes } from 'node:crypto'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import type { Egress, EgressResponse } from '../../../shared/platform/net/port.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { NO_EVENTS } from '../../../shared/tenancy/events/port.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { type LiveConfigs, openLiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import { createTenantConfigStore } from '../../../shared/tenancy/tenant-config/store/tenant-configs.ts'
import { WebhookDispatcher } from '../../../shared/tenancy/webhooks/dispatcher.ts'
import { type DeliveryView, WebhookOutbox } from '../../../shared/tenancy/webhooks/outbox.ts'
import type { DeliveryStatus, DeliveryStore } from '../../../shared/tenancy/webhooks/port.ts'
import {
  findWebhook,
  type WebhookBody,
  WebhookSettings,
  type WebhookView,
} from '../../../shared/tenancy/webhooks/settings.ts'
import { isWebhookSecret } from '../../../shared/tenancy/webhooks/signature.ts'
import { createDeliveryStore } from '../../../shared/tenancy/webhooks/store/deliveries.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { tenantId } from '../../support/tenant.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

export const TENANT = tenantId('t_1')
export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`
const log = SILENT_LOG

async function* nothing(): AsyncGenerator<Uint8Array> {}

type Sent = { url: string; id: string; signatures: string[] }

type ProcessOptions = { delaysMs: readonly number[]; settings: WebhookSettings }

/** Webhooks on SQLite for the tests of one `describe`, with a receiver whose answers a test can set. */
export class TestWebhooks {
  sent: Sent[] = []
  answer: (url: string) => Promise<number> = async () => 204
  headers: EgressResponse['headers'] = {}
  now = (): Date => new Date()
  /** How often a dispatcher has read the outbox. */
  passes = 0
  /** What the dispatchers have counted for the metrics. */
  readonly counted: string[] = []
  /** The warnings of the dispatchers, each with its fields. */
  readonly warnings: [message: string, fields?: object | undefined][] = []
  /** How many rests of receivers the dispatchers have counted. */
  rests = 0
  readonly deliveries: DeliveryStore
  readonly configs: LiveConfigs
  readonly settings: WebhookSettings
  readonly outbox: WebhookOutbox
  readonly #open: WebhookDispatcher[] = []

  constructor(store: Store, configs: LiveConfigs) {
    this.configs = configs
    const deliveries = createDeliveryStore(store)
    this.deliveries = {
      ...deliveries,
      due: (...args) => deliveries.due(...args).finally(() => (this.passes += 1)),
    }
    this.settings = this.settingsWith(randomBytes(32))
    this.outbox = this.outboxAt(undefined)
  }

  outboxAt(consoleUrl: string | undefined): WebhookOutbox {
    const { configs, deliveries: store } = this
    return new WebhookOutbox({ configs, store, consoleUrl, now: () => this.now() })
  }

  settingsWith(masterKey: Buffer): WebhookSettings {
    const { configs } = this
    const keyring = createKeyring(masterKey)
    const now = () => this.now()
    return new WebhookSettings({ configs, keyring, checkUrl: (url) => url, isSecret: isWebhookSecret, now })
  }

  /** Starts the dispatcher of one process. */
  start({ delaysMs = [1, 1], settings = this.settings }: Partial<ProcessOptions> = {}): WebhookDispatcher {
    const dispatcher = new WebhookDispatcher({
      configs: this.configs,
      secretsOf: settings.secretsOf.bind(settings),
      store: this.deliveries,
      egress: { request: (...args) => this.#request(...args) },
      metrics: {
        ...NO_METRICS,
        count: (name) => void (this.rests += Number(name === 'webhook_rests')),
        countDivided: (name, by) => void this.counted.push(`${name} ${by}`),
      },
      log: { ...log, warn: (...warning) => void this.warnings.push(warning) },
      everyMs: 5,
      delaysMs,
    })
    this.#open.push(dispatcher)
    dispatcher.start()
    return dispatcher
  }

  put(name: string, changes: Partial<WebhookBody> = {}, tenant = TENANT): Promise<WebhookView> {
    const body: WebhookBody = { url: urlOf(name), events: ['run.ended'], secret: newSecret(), ...changes }
    return this.settings.put(tenant, name, body)
  }

  async publish(subject: string, tenant = TENANT): Promise<void> {
    const event = { type: 'run.ended', subject, at: new Date().toISOString(), data: { run_id: subject } } as const
    await this.outbox.publish(tenant, event)
  }

  /** When the rest of a receiver ends, as the API shows it. */
  async restsUntil(name: string): Promise<string | null> {
    return (await this.outbox.withRest(TENANT, await this.settings.get(TENANT, name))).resting_until
  }

  /** The failures in a row of a receiver that are stored. */
  async failuresOf(name: string): Promise<number> {
    return (await this.deliveries.receivers.get(TENANT, await this.idOf(name)))?.failures ?? 0
  }

  /** Lets the rest of a receiver be over, as if its time had passed, in processes that do not know it yet. */
  async endRest(name: string): Promise<void> {
    const id = await this.idOf(name)
    for (const dispatcher of this.#open.splice(0)) await dispatcher.close()
    await this.deliveries.receivers.change(TENANT, id, (state) => {
      if (!state) throw new Error(`${name} has not failed`)
      return { ...state, restsUntilMs: 0 }
    })
    this.start({ delaysMs: [1, 1, 1, 1, 1] })
  }

  async idOf(name: string): Promise<string> {
    return findWebhook(await this.configs.stored(TENANT), name).id
  }

  async deliveriesOf(name: string): Promise<DeliveryView[]> {
    return (await this.outbox.list(TENANT, name, { status: undefined, limit: 100 })).deliveries
  }

  async listed(name: string): Promise<{ status: DeliveryStatus; attempts: number; error: string | null }[]> {
    return (await this.deliveriesOf(name)).map(({ status, attempts, error }) => ({ status, attempts, error }))
  }

  /** Waits until the newest delivery of a webhook has this status. */
  async ended(name: string, status: DeliveryStatus): Promise<void> {
    await until(async () => (await this.listed(name))[0]?.status === status, { what: `a delivery to be ${status}` })
  }

  /** Waits until what is due now has been begun, as far as the dispatchers may. */
  async afterNextPasses(): Promise<void> {
    const before = this.passes
    await until(() => this.passes >= before + 4, { what: 'the outbox to be read' })
  }

  sendsTo(name: string): number {
    return this.sent.filter(({ url }) => url === urlOf(name)).length
  }

  async close(): Promise<void> {
    await Promise.all(this.#open.map((dispatcher) => dispatcher.close()))
    await this.configs.close()
  }

  async #request(url: string, { headers = {}, signal }: Parameters<Egress['request']>[1]): Promise<EgressResponse> {
    const signatures = String(headers['webhook-signature']).split(' ')
    this.sent.push({ url, id: String(headers['webhook-id']), signatures })
    const left = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const status = await Promise.race([this.answer(url), left])
    return { status, headers: this.headers, body: nothing(), discard: () => {} }
  }
}

const urlOf = (name: string): string => `https://${name}.example`

/** Opens webhooks before each test of the enclosing `describe`, and closes them after it. */
export function useWebhooks(onOpen: (webhooks: TestWebhooks) => void): void {
  const file = useTestStore({ perTest: true })
  let webhooks: TestWebhooks
  beforeEach(async () => {
    const { store } = file
    const notice = { send: () => {}, listen: async () => async () => {} }
    webhooks = new TestWebhooks(
      store,
      await openLiveConfigs({ store: createTenantConfigStore(store), notice, events: NO_EVENTS, log }),
    )
    onOpen(webhooks)
  })
  afterEach(() => webhooks.close())
}

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createLog } from '../../shared/log.ts'
import { NO_METRICS } from '../../shared/metrics.ts'
import type { Egress } from '../../shared/net/port.ts'
import { createKeyring } from '../../shared/secrets/keyring.ts'
import { COLLECTIONS } from '../../shared/store/collections.ts'
import type { Store } from '../../shared/store/port.ts'
import { openSqliteStore } from '../../shared/store/sqlite/sqlite.ts'
import { createTenantConfigStore } from '../../shared/store/tenant-configs.ts'
import { createDeliveryStore } from '../../shared/store/webhooks/deliveries.ts'
import type { TenantId } from '../../shared/tenant.ts'
import { type LiveConfigs, openLiveConfigs } from '../../shared/tenant-config/live-configs.ts'
import { WebhookSettings } from '../../shared/tenant-config/webhooks.ts'
import { WebhookDispatcher } from '../../shared/webhooks/dispatcher.ts'
import { WebhookOutbox } from '../../shared/webhooks/outbox.ts'
import type { DeliveryStore } from '../../shared/webhooks/port.ts'
import { isWebhookSecret } from '../../shared/webhooks/signature.ts'
import { until } from '../support/until.ts'

const TENANT = 't_1' as TenantId
const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const log = createLog({ level: 'error', write: () => {} })

async function* nothing(): AsyncGenerator<Uint8Array> {}

describe('the dispatcher of webhooks', () => {
  let dir: string
  let store: Store
  let deliveries: DeliveryStore
  let configs: LiveConfigs
  let settings: WebhookSettings
  let outbox: WebhookOutbox
  let sent: { url: string; id: string }[]
  let answer: (url: string) => Promise<number>
  const open: WebhookDispatcher[] = []

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'ae-webhooks-'))
  })
  after(() => rm(dir, { recursive: true }))

  let files = 0
  beforeEach(async () => {
    sent = []
    answer = async () => 204
    store = await openSqliteStore({ file: join(dir, `${files++}.db`), collections: COLLECTIONS })
    deliveries = createDeliveryStore(store)
    const bell = { ring: () => {}, listen: async () => async () => {} }
    configs = await openLiveConfigs({ store: createTenantConfigStore(store), bell, log })
    const keyring = createKeyring(randomBytes(32))
    settings = new WebhookSettings({ configs, keyring, checkUrl: (url) => url, isSecret: isWebhookSecret })
    outbox = new WebhookOutbox({ configs, store: deliveries })
  })

  afterEach(async () => {
    await Promise.all(open.splice(0).map((dispatcher) => dispatcher.close()))
    await configs.close()
    await store.close()
  })

  const egress: Pick<Egress, 'request'> = {
    async request(url, { headers = {}, signal }) {
      sent.push({ url, id: String(headers['webhook-id']) })
      const left = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      const status = await Promise.race([answer(url), left])
      return { status, headers: {}, body: nothing(), discard: () => {} }
    },
  }

  const start = (delaysMs: readonly number[] = [1, 1]) => {
    const secretsOf = settings.secretsOf.bind(settings)
    const deps = { configs, secretsOf, store: deliveries, egress, metrics: NO_METRICS, log, everyMs: 5, delaysMs }
    const dispatcher = new WebhookDispatcher(deps)
    open.push(dispatcher)
    dispatcher.start()
    return dispatcher
  }

  const put = (name: string) =>
    settings.put(TENANT, name, { url: `https://${name}.example`, events: ['run.ended'], secret: SECRET })

  const publish = (subject: string) =>
    outbox.publish(TENANT, { type: 'run.ended', subject, at: new Date().toISOString(), data: { run_id: subject } })

  const listed = async (name: string) =>
    (await outbox.list(TENANT, name, { status: undefined, limit: 100 })).deliveries.map(
      ({ status, attempts, error }) => ({
        status,
        attempts,
        error,
      }),
    )

  const sendsTo = (name: string) => sent.filter(({ url }) => url === `https://${name}.example`).length

  it('two processes send each message once', async () => {
    await put('a')
    start()
    start()
    await Promise.all(Array.from({ length: 30 }, (_, i) => publish(`run_${i}`)))
    await until(async () => (await listed('a')).every(({ status }) => status === 'delivered') && sent.length >= 30, {
      what: 'all messages to be delivered',
      withinMs: 5_000,
    })
    expect(new Set(sent.map(({ id }) => id)).size).to.equal(30)
    expect(sent).to.have.length(30)
  })

  it('an event that is published twice is sent once', async () => {
    await put('a')
    await publish('run_1')
    await publish('run_1')
    start()
    await until(async () => (await listed('a'))[0]?.status === 'delivered', { what: 'the delivery', withinMs: 5_000 })
    await publish('run_1')
    await publish('run_2')
    await until(async () => sendsTo('a') === 2, { what: 'the second event to be sent', withinMs: 5_000 })
    expect(await listed('a')).to.have.length(2)
  })

  it('a receiver that never answers delays no other, however many messages wait for it', async () => {
    await Promise.all([put('slow'), put('quick')])
    answer = (url) => (url.includes('slow') ? new Promise<number>(() => {}) : Promise.resolve(200))
    await Promise.all(Array.from({ length: 300 }, (_, i) => publish(`run_${i}`)))
    start()
    await until(async () => sendsTo('quick') === 300, { what: 'the quick receiver to get all', withinMs: 10_000 })
    expect(sendsTo('slow')).to.equal(4)
  })

  it('a message is given up after its last attempt, and the list says why', async () => {
    await put('a')
    answer = async () => 500
    start()
    await publish('run_1')
    await until(async () => (await listed('a'))[0]?.status === 'dead', {
      what: 'the message to be given up',
      withinMs: 5_000,
    })
    expect(await listed('a')).to.deep.equal([{ status: 'dead', attempts: 3, error: 'The receiver answered 500.' }])
    expect(sendsTo('a')).to.equal(3)
  })

  it('an attempt that a shutdown cuts off is made by the next process, and not counted', async () => {
    await put('a')
    const began = Promise.withResolvers<void>()
    answer = () => {
      began.resolve()
      return new Promise<number>(() => {})
    }
    const first = start()
    await publish('run_1')
    await began.promise
    await first.close()
    answer = async () => 200
    start()
    await until(async () => (await listed('a'))[0]?.status === 'delivered', { what: 'the delivery', withinMs: 5_000 })
    expect((await listed('a'))[0]).to.include({ attempts: 1 })
  })

  it('the messages of a deleted webhook are not sent, and one of the same name begins anew', async () => {
    await put('a')
    await publish('run_1')
    await settings.remove(TENANT, 'a')
    await put('a')
    await publish('run_2')
    start()
    await until(async () => (await deliveries.due(Date.now() + 100_000, { limit: 10 })).length === 0, {
      what: 'the outbox to be empty',
      withinMs: 5_000,
    })
    expect(sendsTo('a')).to.equal(1)
    expect(await listed('a')).to.have.length(1)
  })
})

import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import type { Delivery, DeliveryStore } from '../../shared/tenancy/webhooks/port.ts'
import { createDeliveryStore } from '../../shared/tenancy/webhooks/store/deliveries.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const TENANT = tenantId('t_1')
const OTHER = tenantId('t_2')
const NOW = Date.parse('2026-11-22T10:00:00.000Z')

/** The tests of the deliveries of webhooks and their outbox, which every store passes. */
export function deliveryContract(open: OpenStore): void {
  let deliveries: DeliveryStore
  let now = NOW
  const store = useOpened(() => open(COLLECTIONS))
  before(async () => {
    deliveries = createDeliveryStore(store, () => now)
  })

  let count = 0
  const deliveryOf = (webhook: string, fields: Partial<Delivery> = {}): Delivery => ({
    id: `msg_${String(count++).padStart(32, '0')}`,
    webhook,
    type: 'run.ended',
    status: 'pending',
    attempts: 0,
    created_at: new Date(now + count).toISOString(),
    last_attempt_at: null,
    next_attempt_at: null,
    response_status: null,
    error: null,
    body: '{"type":"run.ended"}',
    ...fields,
  })

  const dueOf = async (webhook: string) =>
    (await deliveries.due(now, { limit: 100 })).filter((due) => due.webhook === webhook)

  it('a delivery that is added twice is stored once, and its tenant alone can read it', async () => {
    const delivery = deliveryOf('twice')
    await deliveries.add(TENANT, delivery)
    await deliveries.add(TENANT, { ...delivery, body: 'another body' })
    expect(await deliveries.get(TENANT, delivery.id)).to.deep.equal(delivery)
    expect(await deliveries.get(OTHER, delivery.id)).to.equal(undefined)
    expect(await dueOf('twice')).to.have.length(1)
  })

  it('a delivery whose entry in the outbox is missing gets it when it is added again, and one that is over gets none', async () => {
    const delivery = deliveryOf('lost')
    await deliveries.add(TENANT, delivery)
    await deliveries.remove(delivery)
    await deliveries.add(TENANT, delivery)
    expect(await dueOf('lost')).to.have.length(1)
    await deliveries.change(TENANT, delivery.id, (stored) => ({ ...stored, status: 'delivered' }))
    await deliveries.remove(delivery)
    await deliveries.add(TENANT, delivery)
    expect(await dueOf('lost')).to.deep.equal([])
  })

  it('of two processes that claim an entry one gets it, and nobody finds it due before the claim is over', async () => {
    await deliveries.add(TENANT, deliveryOf('claimed'))
    const [due] = await dueOf('claimed')
    if (!due) throw new Error('nothing is due')
    const claims = await Promise.all([deliveries.claim(due, now + 60_000), deliveries.claim(due, now + 60_000)])
    expect(claims.filter((claim) => claim !== undefined)).to.have.length(1)
    expect(await dueOf('claimed')).to.deep.equal([])
    now += 60_000
    const [again] = await dueOf('claimed')
    expect(again).to.include({ attempts: 1, tenant: TENANT })
  })

  it('a postponed entry is due at its new time, and entries are due in the order of their times', async () => {
    await deliveries.add(TENANT, deliveryOf('later'))
    now += 1
    await deliveries.add(OTHER, deliveryOf('later'))
    const [first, second] = await dueOf('later')
    const claimed = first && (await deliveries.claim(first, now + 60_000))
    if (!claimed) throw new Error('the claim failed')
    await deliveries.postpone(claimed, now + 5_000)
    expect((await dueOf('later')).map(({ id }) => id)).to.deep.equal([second?.id])
    now += 5_000
    expect((await dueOf('later')).map(({ id }) => id)).to.deep.equal([second?.id, first?.id])
    const [earliest, ...others] = await deliveries.due(now, { limit: 1, webhook: 'later' })
    expect([earliest?.id, others]).to.deep.equal([second?.id, []])
  })

  it('the webhooks that have entries follow one another by their ids, each once, also when nothing is due', async () => {
    const names = ['visit-b', 'visit-a', 'visit-a', 'visit-c']
    for (const name of names) await deliveries.add(TENANT, deliveryOf(name))
    const [due] = await deliveries.due(now, { limit: 1, webhook: 'visit-c' })
    await deliveries.claim(due ?? expect.fail('nothing is due'), now + 60_000)
    expect(await deliveries.webhookAfter('visit-')).to.equal('visit-a')
    expect(await deliveries.webhookAfter('visit-a')).to.equal('visit-b')
    expect(await deliveries.webhookAfter('visit-b')).to.equal('visit-c')
    expect(await deliveries.webhookAfter('visit-c')).to.equal(undefined)
    expect(await deliveries.webhookAfter(undefined)).to.equal('claimed')
  })

  it('the state of a receiver is changed by several processes one after the other, until it is forgotten', async () => {
    const { receivers } = deliveries
    const fail = () =>
      receivers.change(TENANT, 'failing', (state) => ({
        failures: (state?.failures ?? 0) + 1,
        restsUntilMs: 7,
        webhookUpdatedAt: 'then',
      }))
    await Promise.all(Array.from({ length: 5 }, fail))
    const state = { failures: 5, restsUntilMs: 7, webhookUpdatedAt: 'then' }
    expect(await receivers.get(TENANT, 'failing')).to.deep.equal(state)
    expect(await receivers.get(OTHER, 'failing')).to.equal(undefined)
    await receivers.forget(TENANT, 'failing')
    expect(await receivers.get(TENANT, 'failing')).to.equal(undefined)
  })

  it('the deliveries of a webhook are listed newest first, of one status or of all', async () => {
    const states = ['dead', 'pending', 'dead'] as const
    const added = states.map((status) => deliveryOf('listed', { status }))
    for (const delivery of added) await deliveries.add(TENANT, delivery)
    const ids = async (query: object) =>
      (await deliveries.page(TENANT, 'listed', { limit: 10, ...query })).map(({ id }) => id)
    const newestFirst = added.map(({ id }) => id).toReversed()
    expect(await ids({})).to.deep.equal(newestFirst)
    expect(await ids({ status: 'dead' })).to.deep.equal([newestFirst[0], newestFirst[2]])
    const [newest] = added.toReversed()
    expect(await ids({ after: [newest?.created_at, newest?.id] })).to.deep.equal(newestFirst.slice(1))
    expect(await deliveries.page(OTHER, 'listed', { limit: 10 })).to.deep.equal([])
  })
}

import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { TENANT, type TestWebhooks, useWebhooks } from './setup.ts'

const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (cause: unknown) => (cause instanceof AppError ? cause.kind : String(cause)),
  )

describe('the outbox of webhooks', () => {
  let webhooks: TestWebhooks
  useWebhooks((opened) => {
    webhooks = opened
  })

  it('an event is stored for the webhooks that are enabled and want it, as a small message', async () => {
    await webhooks.put('a')
    await webhooks.put('disabled', { enabled: false })
    await webhooks.put('plans', { events: ['plan.ended'] })
    const event = {
      type: 'run.ended',
      subject: 'run_1',
      at: '2026-11-22T10:00:00.000Z',
      data: { run_id: 'run_1' },
    } as const
    await webhooks.outbox.publish(TENANT, event)
    const [delivery] = await webhooks.deliveriesOf('a')
    expect(delivery?.payload).to.deep.equal({ type: event.type, timestamp: event.at, data: event.data })
    expect(delivery?.id).to.match(/^msg_[0-9a-f]{32}$/)
    for (const name of ['disabled', 'plans']) expect(await webhooks.deliveriesOf(name), name).to.deep.equal([])
  })

  it('D10.2: with CONSOLE_URL a message has the address of the page about its event, and none without', async () => {
    const at = '2026-11-22T10:00:00.000Z'
    const events = [
      { type: 'run.ended', subject: 'run_1', page: 'activity/run_1' },
      { type: 'permission.requested', subject: 'perm_1', page: 'approvals/perm_1' },
      { type: 'plan.ended', subject: 'plan_1', page: 'plans/plan_1' },
      { type: 'flow.ended', subject: 'trace_1', page: 'activity/run_1' },
      { type: 'batch.ended', subject: 'batch_1', page: 'flows' },
      { type: 'budget.threshold', subject: '2026-11-22 usd_per_day 5 80', page: 'settings' },
    ] as const
    await webhooks.put('a', { events: events.map(({ type }) => type) })
    const outbox = webhooks.outboxAt('https://agents.example/console')
    for (const { page, ...event } of events) {
      await outbox.publish(TENANT, { ...event, at, data: { id: event.subject } })
      const sent = (await webhooks.deliveriesOf('a')).find(({ type }) => type === event.type)
      const data = { id: event.subject, url: `https://agents.example/console/${page}` }
      expect(sent?.payload).to.deep.equal({ type: event.type, timestamp: at, data })
    }
    const test = await outbox.test(TENANT, 'a')
    expect(test.payload).to.deep.include({ data: { webhook: 'a' } })
  })

  it('whether an event may be wanted is known by its type where the configuration is kept: a disabled webhook wants none', async () => {
    const wanted = async (type: 'run.ended' | 'plan.ended') => {
      await webhooks.configs.get(TENANT)
      return webhooks.outbox.mayWant(TENANT, type)
    }
    await webhooks.put('disabled', { enabled: false })
    expect(await wanted('run.ended')).to.equal(false)
    await webhooks.put('a')
    expect([await wanted('run.ended'), await wanted('plan.ended')]).to.deep.equal([true, false])
    expect(webhooks.outbox.mayWant('unread' as typeof TENANT, 'plan.ended')).to.equal(true)
  })

  it('each test is a message of its own, also for a webhook that is disabled', async () => {
    await webhooks.put('disabled', { enabled: false })
    const [first, second] = [
      await webhooks.outbox.test(TENANT, 'disabled'),
      await webhooks.outbox.test(TENANT, 'disabled'),
    ]
    expect(first.id).not.to.equal(second.id)
    webhooks.start()
    await webhooks.ended('disabled', 'delivered')
    const payload = (await webhooks.deliveriesOf('disabled'))[0]?.payload
    expect(payload).to.deep.include({ type: 'webhook.test', data: { webhook: 'disabled' } })
    expect(await kindOf(webhooks.outbox.test(TENANT, 'nobody'))).to.equal('not_found')
  })

  it('deliveries are listed newest first, and a cursor leads to the rest', async () => {
    await webhooks.put('a')
    let ms = Date.parse('2026-11-22T10:00:00.000Z')
    webhooks.now = () => new Date(ms++)
    for (let i = 0; i < 4; i++) await webhooks.publish(`run_${i}`)
    const list = async (cursor?: string) => {
      const query = { status: undefined, limit: 2, ...(cursor !== undefined && { cursor }) }
      const { deliveries, next_cursor } = await webhooks.outbox.list(TENANT, 'a', query)
      const runs = deliveries.map(({ payload }) => (payload as { data: { run_id: string } }).data.run_id)
      return { runs, next_cursor }
    }
    const first = await list()
    expect(first.runs).to.deep.equal(['run_3', 'run_2'])
    expect(await list(String(first.next_cursor))).to.deep.equal({ runs: ['run_1', 'run_0'], next_cursor: null })
    expect(await kindOf(list('nonsense'))).to.equal('invalid_request')
  })

  it('a delivery that has ended is sent again with the same id, and as often as a new one', async () => {
    await webhooks.put('a')
    webhooks.answer = async () => 500
    webhooks.start()
    await webhooks.publish('run_1')
    await webhooks.ended('a', 'dead')
    const [dead] = await webhooks.deliveriesOf('a')
    const again = await webhooks.outbox.retry(TENANT, 'a', String(dead?.id))
    expect(again).to.include({ id: dead?.id, status: 'pending', error: null })
    await webhooks.ended('a', 'dead')
    expect(webhooks.sent).to.have.length(6)
    expect(new Set(webhooks.sent.map(({ id }) => id)).size).to.equal(1)
  })

  it('a delivery is sent again through its own webhook only, and not while it is pending', async () => {
    await webhooks.put('a')
    await webhooks.put('b')
    await webhooks.outbox.test(TENANT, 'a')
    const id = String((await webhooks.deliveriesOf('a'))[0]?.id)
    const retry = (name: string, delivery = id) => kindOf(webhooks.outbox.retry(TENANT, name, delivery))
    expect(await retry('a')).to.equal('conflict')
    webhooks.start()
    await webhooks.ended('a', 'delivered')
    expect([await retry('b'), await retry('nobody'), await retry('a', 'msg_0')]).to.deep.equal(
      Array(3).fill('not_found'),
    )
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(1)
  })

  it('of two calls at once that send a delivery again, one is refused', async () => {
    await webhooks.put('a')
    await webhooks.outbox.test(TENANT, 'a')
    const dispatcher = webhooks.start()
    await webhooks.ended('a', 'delivered')
    await dispatcher.close()
    const id = String((await webhooks.deliveriesOf('a'))[0]?.id)
    const kinds = await Promise.all([1, 2].map(() => kindOf(webhooks.outbox.retry(TENANT, 'a', id))))
    expect(kinds.toSorted()).to.deep.equal(['conflict', 'no error'])
  })

  it('a delivery that expires while it is to be sent again is not found', async () => {
    await webhooks.put('a')
    const { id } = await webhooks.outbox.test(TENANT, 'a')
    await webhooks.deliveries.change(TENANT, id, (stored) => ({ ...stored, status: 'dead' }))
    webhooks.deliveries.change = async () => undefined
    expect(await kindOf(webhooks.outbox.retry(TENANT, 'a', id))).to.equal('not_found')
  })

  it('a webhook shows until when its receiver rests', async () => {
    const { updated_at } = await webhooks.put('a')
    expect(await webhooks.restsUntil('a')).to.equal(null)
    const restsUntilMs = Date.now() + 60_000
    const resting = () => ({ failures: 3, restsUntilMs, webhookUpdatedAt: updated_at })
    await webhooks.deliveries.receivers.change(TENANT, await webhooks.idOf('a'), resting)
    expect(await webhooks.restsUntil('a')).to.equal(new Date(restsUntilMs).toISOString())
  })

  it('a pending delivery whose entry was lost is put into the outbox by the call that sends it again', async () => {
    await webhooks.put('a')
    const { id } = await webhooks.outbox.test(TENANT, 'a')
    await webhooks.deliveries.remove({ id })
    expect(await kindOf(webhooks.outbox.retry(TENANT, 'a', id))).to.equal('conflict')
    webhooks.start()
    await webhooks.ended('a', 'delivered')
  })
})

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { tenantIds } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'
import { TENANT, type TestWebhooks, useWebhooks } from './setup.ts'

describe('the dispatcher of webhooks', () => {
  let webhooks: TestWebhooks
  useWebhooks((opened) => {
    webhooks = opened
  })

  it('two processes send each message once', async () => {
    await webhooks.put('a')
    webhooks.start()
    webhooks.start()
    await Promise.all(Array.from({ length: 30 }, (_, i) => webhooks.publish(`run_${i}`)))
    await until(
      async () =>
        (await webhooks.listed('a')).every(({ status }) => status === 'delivered') && webhooks.sent.length >= 30,
      {
        what: 'all messages to be delivered',
      },
    )
    expect(new Set(webhooks.sent.map(({ id }) => id)).size).to.equal(30)
    expect(webhooks.sent).to.have.length(30)
  })

  it('an event that is published twice is sent once', async () => {
    await webhooks.put('a')
    await webhooks.publish('run_1')
    await webhooks.publish('run_1')
    webhooks.start()
    await until(async () => (await webhooks.listed('a'))[0]?.status === 'delivered', {
      what: 'the delivery',
    })
    await webhooks.publish('run_1')
    await webhooks.publish('run_2')
    await until(async () => webhooks.sendsTo('a') === 2, { what: 'the second event to be sent' })
    expect(await webhooks.listed('a')).to.have.length(2)
  })

  it('a receiver that never answers delays no other, however many messages wait for it', async () => {
    await Promise.all([webhooks.put('slow'), webhooks.put('quick')])
    webhooks.answer = (url) => (url.includes('slow') ? new Promise<number>(() => {}) : Promise.resolve(200))
    await Promise.all(Array.from({ length: 300 }, (_, i) => webhooks.publish(`run_${i}`)))
    webhooks.start()
    await until(async () => webhooks.sendsTo('quick') === 300, {
      what: 'the quick receiver to get all',
    })
    expect(webhooks.sendsTo('slow')).to.equal(4)
  })

  it('a receiver that failed three times rests as a whole, then gets one message at a time, and all when it is back', async () => {
    await webhooks.put('a')
    webhooks.answer = async () => 500
    webhooks.start({ delaysMs: [1, 1, 1, 1, 1] })
    for (let i = 0; i < 12; i++) await webhooks.publish(`run_${i}`)
    await until(() => webhooks.rests === 1, { what: 'the first rest' })
    await webhooks.afterNextPasses()
    const attempts = webhooks.sent.length
    expect(attempts).to.be.within(3, 6) // Four are under way together.
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(attempts)
    expect(webhooks.rests).to.equal(1)
    expect(Date.parse(String(await webhooks.restsUntil('a'))) - Date.now()).to.be.within(30_000, 60_000)

    await webhooks.endRest('a')
    await until(() => webhooks.rests === 2, { what: 'an attempt after the rest, which fails' })
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(attempts + 1)
    expect(webhooks.rests).to.equal(2)
    expect(Date.parse(String(await webhooks.restsUntil('a'))) - Date.now()).to.be.within(90_000, 120_000)

    webhooks.answer = async () => 204
    await webhooks.endRest('a')
    const areAll = async () => (await webhooks.listed('a')).every(({ status }) => status === 'delivered')
    await until(areAll, { what: 'all to be delivered' })
    await until(async () => (await webhooks.failuresOf('a')) === 0, { what: 'the failures to be forgotten' })
    expect(await webhooks.restsUntil('a')).to.equal(null)
  })

  it('a receiver that rests delays no other, however many messages of its tenant stand in front', async () => {
    await Promise.all([webhooks.put('dead'), webhooks.put('quick', { events: ['plan.ended'] })])
    webhooks.answer = async (url) => (url.includes('dead') ? 500 : 204)
    for (let i = 0; i < 250; i++) await webhooks.publish(`run_${i}`)
    webhooks.start({ delaysMs: [1, 1, 1, 1, 1] })
    await until(() => webhooks.sendsTo('dead') >= 3, { what: 'the receiver to fail' })
    const event = { type: 'plan.ended', subject: 'plan_1', at: new Date().toISOString(), data: {} } as const
    await webhooks.outbox.publish(TENANT, event)
    await until(() => webhooks.sendsTo('quick') === 1, { what: 'the message behind them' })
  })

  it('a change of the webhook, a test and a repeated delivery end the rest', async () => {
    let ms = Date.now()
    webhooks.now = () => new Date(++ms)
    await webhooks.put('a')
    webhooks.answer = async () => 500
    webhooks.start({ delaysMs: [1, 1] })
    const rests = async (subject: string) => {
      await webhooks.publish(subject)
      await until(async () => (await webhooks.restsUntil('a')) !== null, { what: 'the rest' })
    }
    await rests('run_1')
    await webhooks.put('a')
    expect(await webhooks.restsUntil('a')).to.equal(null)
    await rests('run_2')
    const { id } = await webhooks.outbox.test(TENANT, 'a')
    expect(await webhooks.restsUntil('a')).to.equal(null)
    const isDead = async () => (await webhooks.deliveriesOf('a')).find((each) => each.id === id)?.status === 'dead'
    await until(isDead, { what: 'the test to be given up' })
    await until(async () => (await webhooks.restsUntil('a')) !== null, { what: 'the rest' })
    await webhooks.outbox.retry(TENANT, 'a', id)
    expect(await webhooks.restsUntil('a')).to.equal(null)
  })

  it('an outage of the store is logged, the outbox is read again, and the place of an attempt that was not recorded is free', async () => {
    const { deliveries, warnings } = webhooks
    const { due, change } = deliveries
    const away = new Error('the store is away')
    const failures = { due: 1, change: 4 }
    deliveries.due = async (...args) => (failures.due-- > 0 ? Promise.reject(away) : due(...args))
    deliveries.change = async (...args) => (failures.change-- > 0 ? Promise.reject(away) : change(...args))
    await webhooks.put('a')
    for (let i = 0; i < 5; i++) await webhooks.publish(`run_${i}`)
    webhooks.start()
    await until(() => webhooks.counted.length === 1, { what: 'one message to be delivered' })
    const ids = webhooks.sent.slice(0, 4).map(({ id }) => id)
    expect(warnings[0]).to.deep.equal(['the outbox of webhooks could not be read; it is tried again', { cause: away }])
    expect(warnings.slice(1).map(([, fields]) => fields)).to.have.deep.members(ids.map((id) => ({ id, cause: away })))
  })

  it('messages that have waited for a receiver that rests for 36 hours are given up', async () => {
    await webhooks.put('a')
    webhooks.now = () => new Date(Date.now() - 37 * 3_600_000)
    const published = 220
    await Promise.all(Array.from({ length: published }, (_, i) => webhooks.publish(`run_${i}`)))
    webhooks.answer = async () => 500
    webhooks.start({ delaysMs: [1, 1, 1, 1, 1] })
    const areDead = () => webhooks.counted.filter((each) => each === 'webhook_attempts dead').length > 200 // Those under way wait for the next rest.
    await until(areDead, {
      what: 'more than one page to be given up',
      lastSeen: () => webhooks.sent.length,
    })
    expect(webhooks.sent.length).to.be.below(20)
    expect((await webhooks.listed('a')).at(-1)?.error).to.match(/36 hours|answered 500/)
  })

  it('a tenant has at most half of the 64 places, and one with nothing under way always finds one', async () => {
    const never = () => new Promise<number>(() => {})
    webhooks.answer = never
    for (let i = 0; i < 10; i++) await webhooks.put(`a${i}`)
    for (let i = 0; i < 4; i++) await webhooks.publish(`run_${i}`)
    webhooks.start()
    await until(() => webhooks.sent.length >= 32, { what: 'the first messages to be sent' })
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(32)
    for (const tenant of tenantIds('t_2', 't_3', 't_4')) {
      for (let i = 0; i < 10; i++) await webhooks.put(`a${i}`, {}, tenant)
      for (let i = 0; i < 4; i++) await webhooks.publish(`run_${i}`, tenant)
    }
    await until(() => webhooks.sent.length >= 32 + 32 + 2, { what: 'the others to have a part' })
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(32 + 32 + 2)
  })

  it('a process sends a webhook four messages at a time, also after some were accepted, and none that another is sending', async () => {
    const answers: (() => void)[] = []
    webhooks.answer = () => new Promise((resolve) => answers.push(() => resolve(204)))
    await webhooks.put('a')
    for (let i = 0; i < 12; i++) await webhooks.publish(`run_${i}`)
    webhooks.start()
    await until(() => webhooks.sent.length >= 4, { what: 'the first messages to be sent' })
    answers.shift()?.()
    await until(() => webhooks.sent.length >= 5, { what: 'the next message to be sent' })
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(5)
    webhooks.start()
    await until(() => webhooks.sent.length >= 9, { what: 'the other process to send its part' })
    await webhooks.afterNextPasses()
    expect(webhooks.sent).to.have.length(9)
    expect(new Set(webhooks.sent.map(({ id }) => id)).size).to.equal(9)
  })

  it('a message is given up after its last attempt, and the list says why', async () => {
    await webhooks.put('a')
    webhooks.answer = async () => 500
    webhooks.start()
    await webhooks.publish('run_1')
    await webhooks.ended('a', 'dead')
    const [given] = await webhooks.deliveriesOf('a')
    expect(given).to.include({ attempts: 3, error: 'The receiver answered 500.', response_status: 500 })
    expect(given).to.have.property('next_attempt_at', null)
    expect(webhooks.sendsTo('a')).to.equal(3)
    const counted = ['failed', 'failed', 'dead'].map((each) => `webhook_attempts ${each}`)
    await until(() => webhooks.counted.length === 3, { what: 'the attempts to be counted' })
    expect(webhooks.counted).to.deep.equal(counted)
  })

  it('a message that failed is not sent again before its wait is over, which the list shows', async () => {
    await webhooks.put('a')
    webhooks.answer = async () => 500
    webhooks.start({ delaysMs: [3_600_000] })
    await webhooks.publish('run_1')
    await until(async () => (await webhooks.listed('a'))[0]?.attempts === 1, { what: 'the first attempt' })
    await webhooks.afterNextPasses()
    const [waiting] = await webhooks.deliveriesOf('a')
    expect(Date.parse(String(waiting?.next_attempt_at)) - Date.now()).to.be.within(3_500_000, 4_000_000)
    expect(webhooks.sendsTo('a')).to.equal(1)
    expect(await webhooks.deliveries.due(Date.now() + 3_500_000, { limit: 10 })).to.deep.equal([])
    expect(await webhooks.deliveries.due(Date.now() + 4_000_000, { limit: 10 })).to.have.length(1)
  })

  it('an attempt that a shutdown cuts off is made by the next process, and not counted', async () => {
    await webhooks.put('a')
    await webhooks.publish('run_1')
    webhooks.answer = () => new Promise<number>(() => {})
    for (let sent = 1; sent <= 2; sent++) {
      const dispatcher = webhooks.start()
      await until(() => webhooks.sent.length === sent, { what: 'the message to be sent' })
      await dispatcher.close()
    }
    webhooks.answer = async () => 500
    webhooks.start()
    await webhooks.ended('a', 'dead')
    expect((await webhooks.listed('a'))[0]).to.include({ attempts: 3 })
    expect(webhooks.sendsTo('a')).to.equal(2 + 3)
  })

  it('the messages of a deleted webhook are given up unsent, and one of the same name begins anew', async () => {
    await webhooks.put('a')
    await webhooks.publish('run_1')
    const [deleted] = (await webhooks.configs.get(TENANT)).webhooks
    await webhooks.settings.remove(TENANT, 'a')
    await webhooks.put('a')
    await webhooks.publish('run_2')
    webhooks.start()
    await webhooks.ended('a', 'delivered')
    const page = () => webhooks.deliveries.page(TENANT, String(deleted?.id), { limit: 10 })
    await until(async () => (await page())[0]?.status === 'dead', { what: 'the message to be given up' })
    expect((await page())[0]).to.include({ attempts: 1, error: 'The webhook was deleted.' })
    expect(webhooks.sendsTo('a')).to.equal(1)
    expect(await webhooks.listed('a')).to.have.length(1)
  })

  it('a message that waits goes to the address that its webhook has now: a PUT loses none', async () => {
    await webhooks.put('a')
    await webhooks.publish('run_1')
    await webhooks.put('a', { url: 'https://moved.example' })
    webhooks.start()
    await webhooks.ended('a', 'delivered')
    expect(webhooks.sent.map(({ url }) => url)).to.deep.equal(['https://moved.example'])
  })

  it('a message is signed with each secret that is valid', async () => {
    await webhooks.put('a')
    await webhooks.put('a')
    await webhooks.publish('run_1')
    webhooks.start()
    await webhooks.ended('a', 'delivered')
    const [message] = webhooks.sent
    expect(new Set(message?.signatures)).to.have.lengthOf(2)
    for (const signature of message?.signatures ?? []) expect(signature).to.match(/^v1,.{44}$/)
  })

  it('a delivery whose entry stayed in the outbox when it was over is not sent again', async () => {
    await webhooks.put('a')
    await webhooks.publish('run_1')
    const [delivery] = await webhooks.deliveries.page(TENANT, await webhooks.idOf('a'), { limit: 1 })
    if (!delivery) throw new Error('nothing was stored')
    await webhooks.deliveries.change(TENANT, delivery.id, (stored) => ({ ...stored, status: 'delivered' }))
    await webhooks.deliveries.enqueue(TENANT, { ...delivery, id: 'msg_expired' })
    webhooks.start()
    const entries = () => webhooks.deliveries.due(Date.now() + 100_000, { limit: 10 })
    await until(async () => (await entries()).length === 0, { what: 'the outbox to be empty' })
    expect(webhooks.sent).to.deep.equal([])
  })

  it('a secret that cannot be decrypted fails the attempt, which is no failure of the receiver, and the list says so', async () => {
    await webhooks.put('a')
    await webhooks.publish('run_1')
    const dispatcher = webhooks.start({ settings: webhooks.settingsWith(randomBytes(32)), delaysMs: [3_600_000] })
    await until(async () => (await webhooks.listed('a'))[0]?.attempts === 1, { what: 'the attempt to be recorded' })
    expect((await webhooks.listed('a'))[0])
      .to.have.property('error')
      .that.includes('master key')
    expect(webhooks.sent).to.deep.equal([])
    await dispatcher.close()
    expect(await webhooks.failuresOf('a')).to.equal(0)
  })
})

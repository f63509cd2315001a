import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { putInstance } from '../support/flows.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { until } from '../support/until.ts'
import { signatureOf, startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const secret = () => `whsec_${randomBytes(32).toString('base64')}`
const SECRET = secret()
const EVENTS = ['run.ended', 'permission.requested', 'plan.ended', 'flow.ended']

const CONSOLE = 'https://agents.example/console'

type Listed = { deliveries: { id: string; status: string; attempts: number; error: string | null }[] }

inBothForms('webhooks', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let product: Product
  let receiver: WebhookReceiver

  before(async () => {
    product = await startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      CONSOLE_URL: `${CONSOLE}/`,
    })
    product.model.otherwise(() => 'fine')
    receiver = await startWebhookReceiver()
    await put('ci', { secret: SECRET })
    await knownEverywhere()
  })

  after(async () => {
    await product.close()
    await receiver.close()
  })

  const call = (method: string, path: string, body?: unknown) => product.call(method, path, body)

  const put = async (name: string, body: object = {}) => {
    const reply = await call('PUT', `/config/webhooks/${name}`, { url: receiver.url, events: EVENTS, ...body })
    expect(reply.status, reply.text).to.equal(200)
    return reply
  }

  /** Runs until each process has sent an event for one of its own. */
  const knownEverywhere = () =>
    until(
      async () => {
        const streams = await Promise.all(Array.from({ length: 6 }, () => product.run({ prompt: 'hi' })))
        await Promise.all(streams.map((stream) => stream.all()))
        const ids = streams.map((stream) => stream.runId)
        await receiver.wait('an event of one of the runs', ({ body }) => ids.includes(String(body.data['run_id'])))
        return true
      },
      { what: 'the webhook to be known' },
    )

  const about = (field: string, id: unknown) =>
    receiver.wait(`a message about ${id}`, ({ body }) => body.data[field] === id)

  const deliveries = async (query = '') =>
    (JSON.parse((await call('GET', `/config/webhooks/ci/deliveries${query}`)).text) as Listed).deliveries

  it('D10.2: the end of a run is sent as a small message that the secret signs', async () => {
    const stream = await product.run({ prompt: 'a prompt that no message repeats' })
    await stream.all()
    const message = await about('run_id', stream.runId)
    expect(message.body.type).to.equal('run.ended')
    expect(message.body.data).to.include({ run_id: stream.runId, session_id: null, status: 'done' })
    expect(message.raw).not.to.match(/no message repeats|fine/)
    expect(message.headers['webhook-signature']).to.equal(signatureOf(message, SECRET))
    expect(Number(message.headers['webhook-timestamp'])).to.be.closeTo(Date.now() / 1000, 60)
    expect(message.headers['content-type']).to.equal('application/json')
  })

  it('D10.2: a permission request of a session is sent with the ids that its answer needs, and without the input', async () => {
    const { body } = await call('POST', '/sessions')
    const { session_id } = body as { session_id: string }
    product.model.answer([{ tool: 'Write', input: { path: 'a.txt', content: 'a canary in the input' } }])
    const stream = await product.stream(`/sessions/${session_id}/messages`, { prompt: 'write' })
    const { data } = await stream.until('permission_request')
    const message = await about('request_id', data['id'])
    expect(message.body.type).to.equal('permission.requested')
    const { tool_use_id } = data
    expect(message.body.data).to.include({ session_id, run_id: stream.runId, tool_name: 'Write', tool_use_id })
    expect(message.body.data['url']).to.equal(`${CONSOLE}/approvals/${String(data['id'])}`)
    expect(message.raw).not.to.contain('canary')
    const path = `/sessions/${session_id}/permissions/${String(message.body.data['request_id'])}`
    expect((await call('POST', path, { allow: false })).status).to.equal(200)
    await stream.all()
  })

  it('D10.2: the end of a queued plan and of a cancelled one is sent', async () => {
    const submit = async () => {
      const { text } = await call('POST', '/plans/submit', { steps: [{ id: 'a', prompt: 'hello' }] })
      return (JSON.parse(text) as { id: string }).id
    }
    const done = await about('plan_id', await submit())
    expect(done.body).to.deep.include({ type: 'plan.ended' })
    expect(done.body.data).to.include({ status: 'done', url: `${CONSOLE}/plans/${String(done.body.data['plan_id'])}` })
    const held = Promise.withResolvers<void>()
    product.model.answer([{ hold: held.promise }, { text: 'late' }])
    const id = await submit()
    await call('POST', `/plans/${id}/cancel`)
    held.resolve()
    expect((await about('plan_id', id)).body.data).to.include({ status: 'cancelled' })
  })

  it('D10.2: the end of a flow is sent with its trace id', async () => {
    await putInstance({ product }, 'main', { url: product.model.url, key: 'sk-0123456789' })
    product.model.answer('{"summary":"short","key_points":[]}')
    const request = { provider_instance: 'main', model: 'm', input: { text: 'a long text' } }
    const { headers, status, text } = await call('POST', '/flows/summarize/run', request)
    expect([status, text]).to.have.property('0', 200)
    const traceId = headers.get('x-trace-id')
    const { body } = await about('trace_id', traceId)
    expect(body.type).to.equal('flow.ended')
    expect(body.data).to.include({ flow: 'summarize' })
    expect(body.data['status']).to.be.oneOf(['ok', 'invalid_output'])
  })

  it('D10.3: a message that the receiver does not want any more is dead at once, and can be sent again', async () => {
    receiver.answers = [{ status: 410 }]
    const { text } = await call('POST', '/config/webhooks/ci/test')
    const { id } = JSON.parse(text) as { id: string }
    const isIn = async (status: string) => (await deliveries(`?status=${status}`)).some((each) => each.id === id)
    await until(() => isIn('dead'), { what: 'the message to be given up' })
    expect((await call('POST', `/config/webhooks/ci/deliveries/${id}/retry`)).status).to.equal(202)
    await until(() => isIn('delivered'), { what: 'the message to be delivered' })
    expect((await call('POST', `/config/webhooks/ci/deliveries/msg_${'0'.repeat(32)}/retry`)).status).to.equal(404)
  })

  it('D10.1: a secret that replaces another signs beside it, and neither is ever shown', async () => {
    const next = secret()
    await put('ci', { secret: next })
    await until(
      async () => {
        const { text } = await call('POST', '/config/webhooks/ci/test')
        const { id } = JSON.parse(text) as { id: string }
        const message = await receiver.wait('the test message', (each) => each.id === id)
        const both = `${signatureOf(message, next)} ${signatureOf(message, SECRET)}`
        return message.headers['webhook-signature'] === both
      },
      { what: 'both secrets to sign' },
    )
    for (const path of ['/webhooks', '/webhooks/ci', '/engine', '/webhooks/ci/deliveries']) {
      const { text } = await call('GET', `/config${path}`)
      expect(text, path).not.to.contain('whsec_')
    }
    expect(product.log.join('\n')).not.to.match(/whsec_/)
  })

  // What a cluster adds is shown above.
  if (form === 'cluster') return

  for (const [what, body] of [
    ['a secret of 23 bytes', { secret: `whsec_${Buffer.alloc(23).toString('base64')}` }],
    ['an unknown event', { events: ['run.began'] }],
    ['the metadata service', { url: 'http://169.254.169.254/' }],
  ] as const)
    it(`${what} is 400`, async () => {
      const whole = { url: receiver.url, events: EVENTS, secret: secret(), ...body }
      const { status, body: answer } = await call('PUT', '/config/webhooks/new', whole)
      expect(status).to.equal(400)
      expect(answer).to.have.nested.property('error.param')
      expect((await call('GET', '/config/webhooks/new')).status).to.equal(404)
    })
})

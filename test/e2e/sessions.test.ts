import { expect } from 'chai'
import { inBothForms, useProduct } from '../support/product.ts'
import { createSession, sendMessage } from '../support/sessions.ts'
import { until } from '../support/until.ts'

inBothForms('sessions', (startProduct) => {
  const product = useProduct(startProduct)

  const create = (body?: unknown) => createSession(product, body)
  const post = (session: string, prompt: string) => sendMessage(product, session, prompt)
  const infoOf = async (session: string) => (await product.call('GET', `/sessions/${session}`)).body

  it('api.md "What the service does" 3: each message continues the conversation, and message_count counts both sides', async () => {
    const session = await create()
    product.model.answer('I am Ada', 'you asked who I am')
    await (await post(session, 'who are you?')).all()
    expect(await infoOf(session)).to.deep.include({ session_id: session, message_count: 2 })
    await (await post(session, 'what did I ask?')).all()
    expect(product.model.requests.at(-1)?.body['messages']).to.deep.equal([
      { role: 'user', content: 'who are you?' },
      { role: 'assistant', content: 'I am Ada' },
      { role: 'user', content: 'what did I ask?' },
    ])
    expect(await infoOf(session)).to.deep.include({ message_count: 4 })
  })

  it('D4.6: messages to a busy session wait for their turn in order, eight of them; the ninth is 429', async () => {
    const session = await create()
    const gate = Promise.withResolvers<void>()
    product.model.answer([{ hold: gate.promise }, { text: 'first' }])
    const first = await post(session, 'm0')
    await first.until('turn_start')
    const waiting = []
    for (let i = 1; i <= 8; i++) waiting.push(await post(session, `m${i}`))
    expect((await product.call('GET', `/runs/${waiting[0]?.runId}`)).body).to.include({ status: 'waiting' })
    const ninth = await product.call('POST', `/sessions/${session}/messages`, { prompt: 'm9' })
    expect(ninth.status).to.equal(429)
    expect(Number(ninth.headers.get('retry-after'))).to.be.at.least(1)
    gate.resolve()
    await Promise.all([first, ...waiting].map((stream) => stream.all()))
    const messages = product.model.requests.at(-1)?.body['messages'] as { role: string; content: string }[]
    expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).to.deep.equal(
      Array.from({ length: 9 }, (_, i) => `m${i}`),
    )
  })

  it('D4.6: a failed run leaves its user message and its complete turns; a partial turn is dropped', async () => {
    const session = await create()
    product.model.answer([{ tool: 'Glob', input: { pattern: '*' } }], [{ text: 'half a' }, { reset: true }])
    expect((await (await post(session, 'one')).all()).at(-1)?.event).to.equal('error')
    expect(await infoOf(session)).to.deep.include({ message_count: 2 })
    product.model.answer('fine')
    await (await post(session, 'two')).all()
    const messages = product.model.requests.at(-1)?.body['messages'] as { role: string }[]
    expect(messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'user'])
    expect(JSON.stringify(messages)).not.to.include('half a')
  })

  it('D4.7: deleting a session ends its streams with session_deleted and denies its pending permission requests', async () => {
    const session = await create()
    product.model.answer([{ tool: 'Write', input: { path: 'a', content: 'b' } }])
    const stream = await post(session, 'write')
    const { data } = await stream.until('permission_request')
    const queued = await post(session, 'and then')
    expect((await product.call('DELETE', `/sessions/${session}`)).body).to.deep.equal({ status: 'deleted' })
    expect((await stream.all()).at(-1)?.data).to.include({ code: 'session_deleted' })
    expect((await queued.all()).at(-1)?.data).to.include({ code: 'session_deleted' })
    expect((await product.call('GET', `/sessions/${session}`)).status).to.equal(404)
    const late = await product.call('POST', `/sessions/${session}/permissions/${data['id']}`, { allow: true })
    expect(late.status).to.equal(404)
  })
})

inBothForms('a session without messages', (startProduct) => {
  it('D1.3 SESSION_IDLE_SECS: is removed after the time', async () => {
    const product = await startProduct({ SESSION_IDLE_SECS: '1' })
    try {
      await product.call('POST', '/sessions', { session_id: 'idle' })
      const statusOf = async () => (await product.call('GET', '/sessions/idle')).status
      await until(async () => (await statusOf()) === 404, { what: 'the session to be removed' })
    } finally {
      await product.close()
    }
  })
})

import { expect } from 'chai'
import { bodyOf } from './drive.ts'
import { useModelServer } from './model-server.ts'

const USER = { role: 'user', content: 'hi' }

const list = (url: string, headers = {}) => bodyOf(fetch(`${url}/models`, { headers }))
const ids = (each: { id?: string; name?: string }[]) => each.map(({ id, name }) => id ?? name)

describe('the requests to the model server', () => {
  const server = useModelServer({ perTest: true })

  const post = (path: string, body: unknown) =>
    fetch(`${server.url}${path}`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
  const chat = (...messages: object[]) => bodyOf(post('/chat/completions', { model: 'm', messages }))
  const said = async (...messages: object[]) => (await chat(...messages)).choices[0].message.content
  const complaint = async (...messages: object[]) => (await chat(...messages)).error?.message

  it('get the queued answers in order, and then those that the test decides', async () => {
    server.answer('first', 'second')
    server.otherwise(({ prompt }, index) => `${index}: ${prompt}`)
    expect([await said(USER), await said(USER), await said(USER)]).to.deep.equal(['first', 'second', '2: hi'])
  })

  it('are returned by nextRequest once and in order, also those that arrive later', async () => {
    await chat({ ...USER, content: 'one' })
    const waiting = [server.nextRequest(), server.nextRequest(), server.nextRequest()]
    await chat({ ...USER, content: 'two' })
    await chat({ ...USER, content: 'three' })
    expect((await Promise.all(waiting)).map(({ prompt }) => prompt)).to.deep.equal(['one', 'two', 'three'])
    expect(server.requests.map(({ path }) => path)).to.deep.equal(Array(3).fill('/v1/chat/completions'))
  })

  it('with an invalid conversation are refused as a provider refuses them', async () => {
    const call = { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: {} }] }
    const result = { role: 'tool', tool_call_id: 'c1', content: '42' }
    expect(await complaint(USER, call, result)).to.equal(undefined)
    expect(await complaint(USER, call, USER)).to.match(/did not have response messages: c1/)
    expect(await complaint(USER, call)).to.match(/did not have response messages: c1/)
    expect(await complaint(USER, call, result, result)).to.match(/must be a response to a preceeding message/)
    expect(await complaint()).to.equal('Invalid request.')
  })

  it('need a result for each tool call in every format', async () => {
    const anthropic = [USER, { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'R', input: {} }] }]
    const refused = await bodyOf(post('/messages', { messages: anthropic }))
    expect(refused.error.message).to.match(/^messages.1: `tool_use` ids were found without/)
    const items = [USER, { type: 'function_call_output', call_id: 'c9', output: 'x' }]
    const orphan = await bodyOf(post('/responses', { input: items }))
    expect(orphan.error.message).to.equal('No tool call found for function call output with call_id c9.')
    const contents = [{ role: 'model', parts: [{ functionCall: { name: 'R', args: {} } }] }]
    const google = await bodyOf(post('/models/g:generateContent', { contents }))
    expect(google.error).to.include({ status: 'INVALID_ARGUMENT' })
  })

  it('to an unknown path are a 404, and those that are not JSON a 400', async () => {
    expect((await post('/nowhere', {})).status).to.equal(404)
    expect((await post('/chat/completions', '{')).status).to.equal(400)
  })

  it('get the error that the test throws while it decides the answer', async () => {
    server.otherwise(() => {
      throw new Error('not thought of')
    })
    expect((await chat(USER)).error.message).to.match(/not thought of/)
  })

  it('for the list of models take no answer from the queue', async () => {
    server.answer('queued')
    server.models = ['a', 'b']
    expect(ids((await list(server.url)).data)).to.deep.equal(['a', 'b'])
    expect(await list(server.url, { 'anthropic-version': '2023-06-01' })).to.include({ first_id: 'a', has_more: false })
    expect(ids((await list(server.googleUrl)).models)).to.deep.equal(['models/a', 'models/b'])
    server.models = { status: 401 }
    expect((await list(server.url)).error.code).to.equal('invalid_api_key')
    expect(await said(USER)).to.equal('queued')
  })

  it('get tokens as fast as they are read, or by the clock', async () => {
    server.answer([{ tokens: 20_000 }], [{ tokens: 6, everyMs: 4 }])
    const body = { model: 'm', stream: true, messages: [USER] }
    const contents = async () => {
      const text = await (await post('/chat/completions', body)).text()
      return [...text.matchAll(/"delta":{"content":"(\d+) "}/g)].map(([, n]) => Number(n))
    }
    expect(await contents()).to.deep.equal(Array.from({ length: 20_000 }, (_, i) => i + 1))
    const start = performance.now()
    expect(await contents()).to.deep.equal([1, 2, 3, 4, 5, 6])
    expect(performance.now() - start).to.be.at.least(20)
  })

  it('without a stream get the whole answer at once, after its pauses', async () => {
    server.answer(
      [{ text: 'a b', everyMs: 2 }, { wait: 1 }, { tokens: 2, everyMs: 1 }],
      [{ text: 'a', everyMs: 1 }, { error: { status: 503 } }],
    )
    expect(await said(USER)).to.equal('a b1 2 ')
    expect((await post('/chat/completions', { model: 'm', messages: [USER] })).status).to.equal(503)
  })

  it('that are open when the server closes do not count as closed by the client', async () => {
    server.answer({ hangBeforeHeaders: true })
    const lost = chat(USER).catch((cause: unknown) => cause)
    const request = await server.nextRequest()
    await server.close()
    expect(await lost).to.be.instanceOf(TypeError)
    expect(request.closed).to.equal(false)
  })
})

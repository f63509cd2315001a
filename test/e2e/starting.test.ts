import { expect } from 'chai'
import { runIsForgotten } from '../support/forgotten-run.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

const JSON_ONLY = { accept: 'application/json' }

inBothForms('starting a run', (startProduct, form) => {
  const product = useProduct(() => startProduct({ RUN_RESUME_SECS: '1' }))
  before(async () => {
    product.model.otherwise(() => 'fine')
  })

  const start = (body: object, headers: Record<string, string> = {}) =>
    product.call('POST', '/agent/run', { prompt: 'hi', ...body }, headers)
  const runs = async () => ((await product.call('GET', '/runs?limit=200')).body as { runs: object[] }).runs.length

  it('D25c: a client that takes JSON gets the result of the run, and of a message', async () => {
    const reply = await start({}, JSON_ONLY)
    expect(reply.status).to.equal(200)
    expect(reply.body).to.include({ output: 'fine', stop_reason: 'end_turn' })
    expect(reply.body).to.have.property('run_id', reply.headers.get('x-run-id'))
    expect(reply.body).to.have.nested.property('usage.turn_count', 1)
    await product.call('POST', '/sessions', { session_id: 'json' })
    const message = await product.call('POST', '/sessions/json/messages', { prompt: 'hi' }, JSON_ONLY)
    expect(message.body).to.include({ output: 'fine' })
  })

  it('D25c: a client that takes anything gets the stream, as before', async () => {
    for (const accept of [
      '*/*',
      'application/json, text/plain, */*',
      'text/event-stream',
      'application/json, text/event-stream',
    ]) {
      const stream = await product.run({ prompt: 'hi' }, { accept })
      expect((await stream.all()).at(-1)?.event, accept).to.equal('done')
    }
  })

  it('D25c: a run that has failed is its error, with the code and the id', async () => {
    product.model.answer([{ tool: 'Read', input: { path: 'a' } }])
    const reply = await start({ max_turns: 1 }, JSON_ONLY)
    expect(reply.status).to.equal(502)
    expect(reply.body).to.nested.include({ 'error.code': 'max_turns_exceeded' })
    expect(reply.text).to.match(/run_[0-9a-f]{32}/)
  })

  it('D25b: a background run goes on without a reader, for longer than RUN_RESUME_SECS', async () => {
    const gate = Promise.withResolvers<void>()
    product.model.answer([{ hold: gate.promise }, { text: 'late' }])
    const reply = await start({ background: true })
    expect(reply.status).to.equal(202)
    const { run_id } = reply.body as { run_id: string }
    expect(reply.headers.get('x-run-id')).to.equal(run_id)
    await until(() => product.model.requests.length > 0, { what: 'the model to be asked' })
    await runIsForgotten(product, (await start({}, JSON_ONLY)).headers.get('x-run-id'))
    const status = async () => ((await product.call('GET', `/runs/${run_id}`)).body as { status?: string }).status
    expect(await status()).to.equal('running')
    gate.resolve()
    await until(async () => (await status()) === 'done', { what: 'the run to end' })
  })

  it('D25a: requests with one key start one run, whichever gateway they reach, at once or later', async () => {
    const before = await runs()
    const headers = { 'idempotency-key': `key-${Math.random()}` }
    const streams = await Promise.all(Array.from({ length: 4 }, () => product.run({ prompt: 'hi' }, headers)))
    const texts = await Promise.all(streams.map(async (stream) => (await stream.all()).map(({ data }) => data)))
    expect(new Set(streams.map(({ runId }) => runId)).size).to.equal(1)
    for (const text of texts) expect(text).to.deep.equal(texts[0])
    const replayed = streams.filter(({ response }) => response.headers.get('idempotency-replayed') === 'true')
    expect(replayed).to.have.length(3)
    const later = await product.run({ prompt: 'hi' }, headers)
    expect((await later.all()).map(({ data }) => data)).to.deep.equal(texts[0])
    expect(later.runId).to.equal(streams[0]?.runId)
    expect(await runs()).to.be.at.most(before + 1)
  })

  it('D25a: a key whose run ended long ago answers its record, is 409 without a store, and starts nothing', async () => {
    const headers = { 'idempotency-key': `key-${Math.random()}` }
    const first = await start({}, { ...headers, ...JSON_ONLY })
    const runId = first.headers.get('x-run-id')
    await runIsForgotten(product, runId)
    const requests = product.model.requests.length
    const reply = await start({}, { ...headers, ...JSON_ONLY })
    if (form === 'standalone') expect(reply.body).to.deep.equal(first.body)
    else expect(reply.status).to.equal(409)
    expect(reply.text).to.include(runId)
    expect(product.model.requests).to.have.length(requests)
  })
})

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { answerOf, DEFINITION, GOOD, KEYS, putInstance, REQUEST, textSchema, useFlows } from '../../support/flows.ts'
import { inStandaloneForm, type Product, type Reply } from '../../support/product.ts'
import { until } from '../../support/until.ts'

type Refusal = { type: string; message: string; param?: string; code?: string }

const errorOf = ({ body }: Reply) => (body as { error: Refusal }).error

const FLOW = {
  ...DEFINITION,
  input_schema: {
    type: 'object',
    properties: {
      text: { type: 'string' },
      customer: { type: 'object', properties: { age: { type: 'integer' } }, required: ['name'] },
      lines: { type: 'array', items: { type: 'number' } },
    },
    required: ['text'],
    additionalProperties: false,
  },
}

const NO_TRACE = `trace_${'0'.repeat(32)}`

inStandaloneForm('bad input for flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  const { call, publish, run } = bench
  let name: string

  before(async () => {
    await putInstance(bench, 'only', { type: 'openai', url: bench.main.url, key: KEYS.main })
    name = await publish(FLOW)
  })

  beforeEach(() => {
    for (const server of [bench.main, bench.spare]) {
      server.otherwise(() => GOOD)
      server.requests.length = 0
    }
  })

  describe('api.md Named flows 2 to 6: is 400, has a rejected record, and calls no provider:', () => {
    for (const [what, body, param] of [
      ['no field that is required', { input: {} }, '/input/text'],
      ['a field of another type', { input: { text: 5 } }, '/input/text'],
      ['a field within a field', { input: { text: 'a', customer: { age: 1.5, name: 'b' } } }, '/input/customer/age'],
      ['a missing field within a field', { input: { text: 'a', customer: {} } }, '/input/customer/name'],
      ['an item of a list', { input: { text: 'a', lines: [1, 'b'] } }, '/input/lines/1'],
      ['an unknown field', { input: { text: 'a', 'a/b~': 1 } }, '/input/a~1b~0'],
      [
        'a wrong field and an unknown instance: the input comes first',
        { input: {}, provider_instance: 'x' },
        '/input/text',
      ],
      ['an unknown instance', { provider_instance: 'nobody' }, '/provider_instance'],
      ['a type without an instance', { provider_instance: 'google' }, '/provider_instance'],
      ['a type with several instances', { provider_instance: 'openai-compatible' }, '/provider_instance'],
      ['no model', { model: undefined }, '/model'],
      ['a misspelled fallback', { fallback_instance: 'sparee', fallback_model: 'm-9' }, '/fallback_instance'],
      [
        'an ambiguous fallback',
        { fallback_instance: 'openai-compatible', fallback_model: 'm-9' },
        '/fallback_instance',
      ],
    ] as const)
      it(what, async () => {
        const request = { ...REQUEST, ...body }
        const reply = await run(name, body)
        expect(reply.status, reply.text).to.equal(400)
        expect(errorOf(reply)).to.include({ type: 'invalid_request_error', param })
        expect(bench.main.requests.length + bench.spare.requests.length).to.equal(0)
        const record = await bench.dispatch(reply)
        expect(record).to.deep.include({ status: 'rejected', turns: 0, duration_ms: 0, output: null, raw_output: null })
        expect(record).to.deep.include({ input: request.input, flow: { name, version: 1 }, served_instance: null })
        expect(record['error']).to.deep.equal({ type: 'invalid_request_error', message: errorOf(reply).message })
        const frames = await (await bench.product.stream(`/dispatches/${record['trace_id']}/events`)).all()
        expect(frames.at(-1)).to.deep.nested.include({ event: 'error', 'data.status': 400 })
      })
  })

  describe('is 400 without an execution:', () => {
    for (const [what, body, param] of [
      ['half a fallback: no model', { ...REQUEST, fallback_instance: 'spare' }, '/fallback_model'],
      ['half a fallback: no instance', { ...REQUEST, fallback_model: 'm-9' }, '/fallback_instance'],
      ['no provider_instance', { input: REQUEST.input, model: 'm-1' }, '/provider_instance'],
      ['no input', { provider_instance: 'main', model: 'm-1' }, '/input'],
      ['an input that is no object', { ...REQUEST, input: 'text' }, '/input'],
      ['a model of no characters', { ...REQUEST, model: '' }, '/model'],
      ['an instance of another form', { ...REQUEST, provider_instance: '../main' }, '/provider_instance'],
      ['a list', [REQUEST], undefined],
      ['no body', undefined, undefined],
    ] as const)
      it(what, async () => {
        const flow = await publish(DEFINITION)
        const reply = await call('POST', `/flows/${flow}/run`, body)
        expect(reply.status, reply.text).to.equal(400)
        if (param !== undefined) expect(errorOf(reply)).to.include({ param })
        expect((await call('GET', `/dispatches?flow=${flow}`)).body).to.have.property('dispatches').that.is.empty
        expect(bench.main.requests).to.be.empty
      })
  })

  it('api.md Named flows 7: with Accept: text/event-stream a refusal is still a plain HTTP error', async () => {
    const reply = await run(name, { input: {} }, { accept: 'text/event-stream' })
    expect(reply.status).to.equal(400)
    expect(reply.headers.get('content-type')).to.match(/^application\/json/)
    expect(await bench.dispatch(reply)).to.include({ status: 'rejected' })
    expect((await run('flow-none', {}, { accept: 'text/event-stream' })).status).to.equal(404)
  })

  it('api.md Named flows 3: a name matches first, and a type when the tenant has one instance of it', async () => {
    const named = await publish(DEFINITION)
    const byType = await run(named, { provider_instance: 'openai' })
    expect(answerOf(byType)).to.include({ served_instance: 'only' })
    expect(await bench.dispatch(byType)).to.include({ provider_instance: 'only', served_instance: 'only' })
    await putInstance(bench, 'openai', { url: bench.spare.url, key: KEYS.spare })
    const servedBy = async () => answerOf(await run(named, { provider_instance: 'openai' })).served_instance
    await until(async () => (await servedBy()) === 'openai', { what: 'the instance named like the type to serve' })
    expect(bench.spare.requests).to.have.length(1)
  })

  it('a sub-agent whose instance is gone is 400 with its place, before the others begin', async () => {
    const sub = { name: 'risk', prompt: 'Find risks.', output_schema: textSchema('risk'), provider_instance: 'nobody' }
    const flow = await publish({ ...DEFINITION, sub_agents: [{ ...sub, name: 'a', provider_instance: 'main' }, sub] })
    const reply = await run(flow)
    expect(reply.status).to.equal(400)
    expect(errorOf(reply)).to.include({ param: '/sub_agents/1/provider_instance' })
    expect(await bench.dispatch(reply)).to.include({ status: 'rejected' })
    expect(bench.main.requests).to.be.empty
  })

  it('nothing but an instance of the tenant is ever called: the server’s own model is not', () => {
    expect(bench.product.model.requests).to.be.empty
  })

  for (const [method, path, status] of [
    ['GET', '/dispatches/x', 404],
    ['GET', `/dispatches/${NO_TRACE}`, 404],
    ['GET', `/dispatches/${NO_TRACE}/events`, 404],
    ['GET', '/dispatches/x/events', 404],
    ['GET', `/dispatches/${NO_TRACE}/events?speed=0`, 400],
    ['GET', `/dispatches/${NO_TRACE}/events?speed=101`, 400],
    ['GET', `/dispatches/${NO_TRACE}/events?speed=fast`, 400],
    ['GET', `/dispatches/${NO_TRACE}/events?last_event_id=x`, 400],
    ['GET', '/dispatches?limit=0', 400],
    ['GET', '/dispatches?limit=201', 400],
    ['GET', '/dispatches?cursor=x', 400],
    ['GET', '/dispatches?status=done', 400],
    ['GET', '/dispatches?flow=Upper', 400],
    ['GET', '/dispatches?since=yesterday', 400],
    ['GET', '/dispatches?until=2026-13-01', 400],
    ['GET', '/flows?limit=x', 400],
    ['GET', '/flows?cursor=x', 400],
    ['POST', '/flows/summarize/publish?require_pass_rate=2', 400],
    ['POST', '/flows/Upper/run', 404],
    ['POST', '/flows/tools/run', 404],
    ['GET', '/flows/flow-none/memory', 404],
    ['DELETE', '/flows/summarize/memory?entry_id=x', 400],
    ['DELETE', `/flows/summarize/memory?entry_id=mem_${'0'.repeat(32)}`, 404],
  ] as const)
    it(`${method} ${path} is ${status}`, async () => {
      expect((await call(method, path, path.endsWith('/run') ? REQUEST : undefined)).status).to.equal(status)
    })
})

inStandaloneForm('flows without a history', (startProduct, form) => {
  const bench = useFlows(startProduct, form, { DISPATCH_STORE: 'false' })

  it('D1.3 DISPATCH_STORE: the dispatch endpoints answer 503, and flows run', async () => {
    bench.main.otherwise(() => GOOD)
    const name = await bench.publish(DEFINITION)
    const reply = await bench.run(name)
    const { trace_id: traceId } = answerOf(reply)
    expect(reply.headers.get('x-trace-id')).to.equal(traceId)
    for (const path of ['', `/${traceId}`, `/${traceId}/events`]) {
      const { status, body } = await bench.call('GET', `/dispatches${path}`)
      expect(status, path).to.equal(503)
      expect(body).to.have.nested.property('error.type', 'unavailable_error')
    }
    expect((await bench.run(name, { input: {} })).status).to.equal(400)
  })
})

inStandaloneForm('flows without a master key', (startProduct) => {
  let product: Product

  before(async () => {
    product = await startProduct({ ENABLE_BASH: 'true' })
  })
  after(() => product.close())

  it('api.md Named flows 4: flows can be edited and published, and running them is 503', async () => {
    const name = `flow-${randomBytes(4).toString('hex')}`
    expect((await product.call('PUT', `/flows/${name}`, DEFINITION)).status).to.equal(200)
    expect((await product.call('POST', `/flows/${name}/publish`)).status).to.equal(200)
    for (const path of [`/flows/${name}/run`, `/flows/${name}/evaluate`, '/flows/flow-none/run']) {
      const { status, body } = await product.call('POST', path, REQUEST)
      expect(status, path).to.equal(503)
      expect(body).to.deep.nested.include({ 'error.type': 'unavailable_error', 'error.code': 'config_disabled' })
    }
    const { body } = await product.call('GET', '/dispatches')
    expect(body).to.deep.equal({ dispatches: [], next_cursor: null })
    expect(product.model.requests).to.be.empty
  })
})

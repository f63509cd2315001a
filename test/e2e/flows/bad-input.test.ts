import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { answerOf, DEFINITION, GOOD, KEYS, putInstance, REQUEST, useFlows } from '../../support/flows.ts'
import { inStandaloneForm, type Product, type Reply } from '../../support/product.ts'

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

inStandaloneForm('bad input for flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  const { publish, run } = bench
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
      ['a missing field within a field', { input: { text: 'a', customer: {} } }, '/input/customer/name'],
      [
        'a wrong field and an unknown instance: the input comes first',
        { input: {}, provider_instance: 'x' },
        '/input/text',
      ],
      ['a type with several instances', { provider_instance: 'openai-compatible' }, '/provider_instance'],
      ['a misspelled fallback', { fallback_instance: 'sparee', fallback_model: 'm-9' }, '/fallback_instance'],
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

  it('api.md Named flows 7: with Accept: text/event-stream a refusal is still a plain HTTP error', async () => {
    const reply = await run(name, { input: {} }, { accept: 'text/event-stream' })
    expect(reply.status).to.equal(400)
    expect(reply.headers.get('content-type')).to.match(/^application\/json/)
    expect(await bench.dispatch(reply)).to.include({ status: 'rejected' })
    expect((await run('flow-none', {}, { accept: 'text/event-stream' })).status).to.equal(404)
  })

  it('nothing but an instance of the tenant is ever called: the server’s own model is not', () => {
    expect(bench.product.model.requests).to.be.empty
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

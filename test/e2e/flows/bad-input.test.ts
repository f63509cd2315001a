import { expect } from 'chai'
import { DEFINITION, GOOD, KEYS, putInstance, REQUEST, useFlows } from '../../support/flows.ts'
import { inStandaloneForm, type Reply } from '../../support/product.ts'

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

  it('nothing but an instance of the tenant is ever called: the server’s own model is not', () => {
    expect(bench.product.model.requests).to.be.empty
  })
})

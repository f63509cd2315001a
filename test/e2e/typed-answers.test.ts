import { expect } from 'chai'
import { inBothForms, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

const JSON_ONLY = { accept: 'application/json' }
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
}
const OSLO = { city: 'Oslo', degrees: 3 }

inBothForms('typed answers and choices of a run', (startProduct, form) => {
  const product = useProduct(startProduct)

  const start = (body: object) =>
    product.call('POST', '/agent/run', { prompt: 'How warm is Oslo?', response_schema: SCHEMA, ...body }, JSON_ONLY)

  it('D41.1: a run, and a message of a session, answer with the value, after tools and a correction', async () => {
    product.model.answer([{ tool: 'Read', input: { path: 'a' } }], '{"city":"Oslo"}', JSON.stringify(OSLO))
    const reply = await start({})
    expect([reply.status, reply.body]).to.deep.equal([200, { ...(reply.body as object), output: OSLO }])
    product.model.answer(JSON.stringify(OSLO))
    await product.call('POST', '/sessions', { session_id: 'typed' })
    const message = { prompt: 'And now?', response_schema: SCHEMA }
    const answer = await product.call('POST', '/sessions/typed/messages', message, JSON_ONLY)
    expect(answer.body).to.deep.include({ output: OSLO })
  })

  it('D41.2: an answer that never fits is 502 invalid_output with its problems, and the record has the code', async () => {
    product.model.answer('no', 'no', '{"city":"Oslo"}')
    const reply = await start({})
    expect(reply.status).to.equal(502)
    expect(reply.body).to.nested.include({ 'error.code': 'invalid_output', 'error.problems[0].param': '/degrees' })
  })

  it('D41.1: a schema that cannot be used is 400 at its place, before a model is called', async () => {
    let deep: object = { type: 'string' }
    for (let i = 0; i < 40; i++) deep = { type: 'array', items: deep }
    const loop = { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } }
    const large = { enum: Array.from({ length: 9_000 }, (_, i) => `value ${i}`) }
    const remote = { properties: { a: { $ref: 'https://example.com/a.json' } } }
    const asked = product.model.requests.length
    for (const [response_schema, place] of [
      [deep, '/response_schema/'],
      [loop, '/response_schema'],
      [large, '/response_schema'],
      [remote, '/response_schema/properties/a'],
    ] as const) {
      const reply = await start({ response_schema })
      expect(reply.status, place).to.equal(400)
      const { error } = reply.body as { error: { param: string } }
      expect(error.param).to.satisfy((param: string) => param.startsWith(place))
    }
    expect(product.model.requests).to.have.length(asked)
  })

  it('D42: the choices of a run reach the provider, and tools that are not allowed are not offered', async () => {
    product.model.answer('fine')
    const choices = { temperature: 0.2, max_output_tokens: 99, effort: 'low', tool_choice: 'required' }
    await start({ response_schema: undefined, allowed_tools: ['Read(docs/*)', 'Glob'], ...choices })
    const { body } = product.model.requests.at(-1) ?? {}
    expect(body).to.deep.include({ temperature: 0.2, max_tokens: 99, reasoning_effort: 'low', tool_choice: 'required' })
    const offered = body?.['tools'] as { function: { name: string } }[]
    expect(offered.map(({ function: { name } }) => name).toSorted()).to.deep.equal(['Glob', 'Read'])
  })

  it('D42.5: metadata finds the run, and divides what was used; 17 pairs and wrong names are 400', async () => {
    product.model.answer('fine')
    const metadata = { team: `red-${Math.random()}`, stage: 'a=b' }
    const { run_id } = (await start({ response_schema: undefined, metadata })).body as { run_id: string }
    const found = async (query: string) =>
      ((await product.call('GET', `/runs?${query}`)).body as { runs: { run_id: string; metadata?: object }[] }).runs
    const query = `metadata.team=${metadata.team}`
    expect((await found(`${query}&metadata.stage=a%3Db`)).map((run) => [run.run_id, run.metadata])).to.deep.equal([
      [run_id, metadata],
    ])
    expect(await found(`${query}&metadata.stage=b`)).to.deep.equal([])
    const isCounted = async () => {
      const { rows } = (await product.call('GET', '/usage?by=metadata.team')).body as { rows: { key: string }[] }
      return rows.some(({ key }) => key === metadata.team)
    }
    // The cluster of this test has no store.
    if (form === 'standalone') await until(isCounted, { what: 'the run to be counted', everyMs: 100 })
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v']))
    const proto = JSON.parse('{"__proto__":"v"}') as object
    for (const wrong of [many, proto, { 'a.b': 'v' }, { a: 7 }, { a: 'v'.repeat(513) }])
      expect((await start({ metadata: wrong })).status, JSON.stringify(wrong)).to.equal(400)
  })
})

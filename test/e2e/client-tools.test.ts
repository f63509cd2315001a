import { expect } from 'chai'
import type { EventStream } from '../support/event-stream.ts'
import type { Answer } from '../support/model-server/model-server.ts'
import { inBothForms, inStandaloneForm, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

const ORDER = {
  name: 'get_order',
  description: 'Looks an order up.',
  input_schema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
}
const call = (id: string, use = id) => ({ tool: 'get_order', input: { id }, id: use })
const PNG = Buffer.from('\x89PNG\r\n\x1a\n0000', 'latin1').toString('base64')

inBothForms("the caller's own tools", (startProduct) => {
  const product = useProduct(() => startProduct({ TOOL_PERMISSIONS: '{"WebFetch":"client"}' }))

  const start = (...answers: Answer[]) => {
    product.model.answer(...answers)
    return product.run({ prompt: 'Where is it?', client_tools: [ORDER] })
  }
  const answer = (runId: string, id: string, body: unknown) =>
    product.call('POST', `/runs/${runId}/tool-calls/${id}`, body)
  const waiting = async (runId: string) =>
    (
      (await product.call('GET', '/tool-calls?state=pending')).body as { tool_calls: Record<string, unknown>[] }
    ).tool_calls.filter((each) => each['run_id'] === runId)
  const read = () => product.model.requests.at(-1)?.body['messages'] as { role: string; content: string }[]
  const toolUse = (stream: EventStream) => stream.until('tool_use').then(({ data }) => data)

  it('D45.1a: the model calls one, the run waits and is listed, and the answer is what the model reads', async () => {
    const stream = await start([call('A-7', 'c1')], 'It is on its way.')
    const use = await toolUse(stream)
    expect(use).to.deep.include({ id: 'c1', tool_name: 'get_order', input: { id: 'A-7' }, executor: 'client' })
    const offered = product.model.requests.at(-1)?.body['tools'] as { function: { name: string; parameters: object } }[]
    expect(offered.at(-1)?.function).to.deep.include({ name: 'get_order', parameters: ORDER.input_schema })
    const run = await product.call('GET', `/runs/${stream.runId}`)
    expect(run.body).to.deep.include({ status: 'waiting', tool_call_ids: ['c1'] })
    const [listed, ...others] = await waiting(stream.runId)
    expect(others).to.deep.equal([])
    expect(listed).to.deep.include({
      tool_use_id: 'c1',
      tool_name: 'get_order',
      input: { id: 'A-7' },
      session_id: stream.runId,
    })
    expect(listed?.['expires_at']).to.equal(use['expires_at'])
    expect((await product.call('GET', '/permissions')).body).to.deep.equal({ permissions: [], next_cursor: null })
    expect((await answer(stream.runId, 'c1', { output: 'sent on Monday' })).body).to.deep.equal({ status: 'ok' })
    const result = {
      id: 'c1',
      tool_name: 'get_order',
      output: 'sent on Monday',
      is_error: false,
      how: 'reply',
      by: 'anonymous',
    }
    expect((await stream.until('tool_result')).data).to.deep.equal(result)
    expect((await stream.all()).at(-1)?.event).to.equal('done')
    expect(read().at(-1)).to.include({ role: 'tool', content: 'sent on Monday' })
    expect(await waiting(stream.runId)).to.deep.equal([])
  })

  it('D45.1a: parallel calls are answered one by one, with an error or a file too; of two answers at once one wins', async () => {
    const stream = await start([call('A', 'p1'), call('B', 'p2'), call('C', 'p3')], 'fine')
    await until(async () => (await waiting(stream.runId)).length === 3, { what: 'three calls' })
    const both = await Promise.all(['one', 'two'].map((output) => answer(stream.runId, 'p2', { output })))
    expect(both.map(({ status }) => status).toSorted()).to.deep.equal([200, 409])
    const won = both[0]?.status === 200 ? 'one' : 'two'
    const parts = [
      { type: 'text', text: 'The label:' },
      { type: 'file', name: 'label.png', data: PNG },
    ]
    expect((await answer(stream.runId, 'p3', { parts })).status).to.equal(200)
    expect((await answer(stream.runId, 'p1', { output: 'no such order', is_error: true })).status).to.equal(200)
    const results = (await stream.all()).flatMap(({ event, data }) => (event === 'tool_result' ? [data] : []))
    expect(results.map(({ id, output, is_error }) => [id, output, is_error])).to.have.deep.members([
      ['p2', won, false],
      ['p3', 'The label:\n\n[label.png: image/png, 1 KiB, attached]', false],
      ['p1', 'no such order', true],
    ])
    expect((await answer(stream.runId, 'p2', { output: 'again' })).status).to.equal(409)
  })

  it('D45.1c: an answer to nothing is 404, a wrong one 400, and one that is too long too; then the call still waits', async () => {
    const stream = await start([call('A', 'w1')], 'fine')
    await toolUse(stream)
    const other = `run_${'0'.repeat(32)}`
    for (const [runId, id, body, status] of [
      [stream.runId, 'nothing', { output: '' }, 404],
      [other, 'w1', { output: '' }, 404],
      [stream.runId, 'w1', {}, 400],
      [stream.runId, 'w1', { output: 'a', parts: [{ type: 'text', text: 'b' }] }, 400],
      [stream.runId, 'w1', { output: 7 }, 400],
      [stream.runId, 'w1', { output: 'x'.repeat(2 * 1024 * 1024) }, 400],
      [stream.runId, 'w1', { parts: [{ type: 'file', data: 'bm90IGEgcGljdHVyZQ==' }] }, 400],
      [
        stream.runId,
        'w1',
        { parts: Array.from({ length: 3 }, () => ({ type: 'text', text: 'x'.repeat(600_000) })) },
        400,
      ],
    ] as const)
      expect((await answer(runId, id, body)).status, JSON.stringify(body).slice(0, 80)).to.equal(status)
    expect(await waiting(stream.runId)).to.have.length(1)
    const long = 'y'.repeat(1024 * 1024)
    expect((await answer(stream.runId, 'w1', { output: long })).status).to.equal(200)
    const frames = await stream.all()
    expect(frames.find(({ event }) => event === 'warning')?.data, 'as the output of every tool').to.include({
      code: 'tool_output_truncated',
    })
  })

  it('D45.3: a session keeps them for its later messages until they are changed; an id that the model repeats becomes another', async () => {
    await product.call('POST', '/sessions', { session_id: 'kept' })
    const send = (body: object) => product.stream('/sessions/kept/messages', { prompt: 'Go', ...body })
    for (const body of [{ client_tools: [ORDER] }, {}]) {
      product.model.answer([call('A', 'same')], [call('B', 'same')], 'done')
      const stream = await send(body)
      const ids = [String((await toolUse(stream))['id'])]
      await answer(stream.runId, ids[0] ?? '', { output: 'a' })
      await stream.until('turn_start')
      ids.push(String((await toolUse(stream))['id']))
      expect(new Set(ids).size).to.equal(2)
      expect((await answer(stream.runId, ids[1] ?? '', { output: 'b' })).status).to.equal(200)
      expect((await stream.all()).at(-1)?.event).to.equal('done')
    }
    product.model.answer('none', 'none')
    for (const body of [{ client_tools: [] }, {}]) {
      await (await send(body)).all()
      expect(JSON.stringify(product.model.requests.at(-1)?.body['tools'])).to.not.include('get_order')
    }
  })

  it('D45.2a: 65 tools, a name of the server, one name twice and a schema that cannot be used are 400, and no model is called', async () => {
    const asked = product.model.requests.length
    const loop = { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } }
    const many = Array.from({ length: 65 }, (_, i) => ({ name: `tool_${i}` }))
    for (const [client_tools, param] of [
      [many, '/client_tools'],
      [[ORDER, { name: 'Read' }], '/client_tools/1/name'],
      [[{ name: 'mcp__files__read' }], '/client_tools/0/name'],
      [[ORDER, ORDER], '/client_tools/1/name'],
      [[{ name: 'no blanks' }], '/client_tools/0/name'],
      [[ORDER, { name: 'bomb', input_schema: loop }], '/client_tools/1/input_schema/$defs/a'],
      [many.slice(0, 40).map((tool) => ({ ...tool, description: 'x'.repeat(7_000) })), '/client_tools'],
    ] as const) {
      const { status, body } = await product.call('POST', '/agent/run', { prompt: 'Go', client_tools })
      expect([status, (body as { error: { param?: string } }).error.param]).to.deep.equal([400, param])
    }
    expect(product.model.requests).to.have.length(asked)
  })

  it('D45.2c: a tool of the server whose policy is `client` is called by the client, in the same way', async () => {
    product.model.answer([{ tool: 'WebFetch', input: { url: 'https://intra.example/' }, id: 'f1' }], 'read')
    const stream = await product.run({ prompt: 'Read it' })
    expect(await toolUse(stream)).to.include({ executor: 'client', tool_name: 'WebFetch' })
    await answer(stream.runId, 'f1', { output: 'the page' })
    await stream.all()
    expect(read().at(-1)?.content).to.equal('the page')
  })
})

inStandaloneForm("the caller's own tools, without an answer", (startProduct) => {
  it('D45.1a: after CLIENT_TOOL_TIMEOUT_SECS the model reads that none came, and a late answer is 404', async () => {
    const product = await startProduct({ CLIENT_TOOL_TIMEOUT_SECS: '1' })
    try {
      expect((await product.call('GET', '/me')).body).to.nested.include({
        ...{ client_tool_timeout_secs: 1, 'features.client_tools': true, 'features.steering': true },
        ...{ 'run_limits.client_tools': 64, 'run_limits.client_tools_chars': 262_144, 'run_limits.steers_waiting': 8 },
        ...{ 'run_limits.client_tool_output_chars': 1_048_576, 'run_limits.client_tool_parts_chars': 1_500_000 },
        ...{
          'run_limits.response_schema_bytes': 65_536,
          'run_limits.metadata_pairs': 16,
          'run_limits.prompt_chars': 100_000,
          'run_limits.allowed_tools': 64,
        },
      })
      product.model.answer([call('A', 't1')], 'fine')
      const stream = await product.run({ prompt: 'Go', client_tools: [ORDER] })
      expect((await stream.until('tool_result')).data).to.include({ how: 'timeout', is_error: true })
      expect((await product.call('POST', `/runs/${stream.runId}/tool-calls/t1`, { output: '' })).status).to.equal(404)
      expect((await stream.all()).at(-1)?.event).to.equal('done')
    } finally {
      await product.close()
    }
  })
})

import { expect } from 'chai'
import {
  answerOf,
  DEFINITION,
  GOOD,
  KEYS,
  lastOf,
  putInstance,
  systemOf,
  textSchema,
  useFlows,
} from '../../support/flows.ts'
import type { Received } from '../../support/model-server/model-server.ts'
import { inStandaloneForm, type Reply } from '../../support/product.ts'

const FALLBACK = { fallback_instance: 'spare', fallback_model: 'm-9' }

inStandaloneForm('verdicts of flows', (startProduct, form) => {
  const bench = useFlows(startProduct, form)
  const { call, publish, run } = bench
  let name: string

  before(async () => {
    name = await publish(DEFINITION)
  })

  beforeEach(() => {
    for (const server of [bench.main, bench.spare]) {
      server.otherwise(() => GOOD)
      server.requests.length = 0
    }
  })

  const rolesOf = ({ body }: Received) => (body['messages'] as { role: string }[]).map(({ role }) => role)
  const formOf = ({ body }: Received) => body['response_format']

  describe('api.md Named flows 5: an agent corrects its own answer', () => {
    for (const [what, wrong, problem] of [
      ['no JSON', 'Gladly! The answer is yes.', /the answer is not JSON/],
      ['half of it', '{"answer":"y', /the answer is not JSON/],
      ['nothing', ' ', /the answer is empty/],
      ['another type', '{"answer":5}', /\/answer must be a string, not/],
      ['a missing field', '{}', /\/answer is missing/],
      ['an unknown field', '{"answer":"yes","more":1}', /\/more is not allowed/],
      ['a remark that names no value', 'I hope this helps.', /the answer is not JSON/],
    ] as const)
      it(`that is ${what}`, async () => {
        bench.main.answer(wrong)
        const reply = await run(name)
        expect(answerOf(reply)).to.deep.include({ verdict: 'ok', output: { answer: 'yes' }, served_instance: 'main' })
        const [first, second] = bench.main.requests as [Received, Received]
        expect(bench.main.requests).to.have.length(2)
        expect(systemOf(second)).to.equal(systemOf(first))
        expect(rolesOf(second)).to.deep.equal(['system', 'user', 'assistant', 'user'])
        expect(lastOf(second))
          .to.match(/^Your answer is not a valid output:\n- /)
          .and.match(problem)
        expect(await bench.dispatch(reply)).to.include({ status: 'ok', turns: 2, raw_output: GOOD })
      })
  })

  for (const [what, text] of [
    ['blanks around it', ` \n${GOOD}\n`],
    ['a fence', `\`\`\`json\n${GOOD}\n\`\`\``],
    ['words and a fence', `Here it is:\n\`\`\`\n${GOOD}\n\`\`\`\nDone.`],
  ] as const)
    it(`an answer with ${what} needs no correction`, async () => {
      bench.main.answer(text)
      const reply = await run(name)
      expect(answerOf(reply).output).to.deep.equal({ answer: 'yes' })
      expect(bench.main.requests).to.have.length(1)
      expect(await bench.dispatch(reply)).to.deep.include({ raw_output: text, output: { answer: 'yes' } })
    })

  it('api.md Named flows 4 and 6: three invalid answers are 200 with invalid_output, and the fallback is never asked', async () => {
    const longName = 'x'.repeat(5_000)
    bench.main.answer('one', '{"answer":2}', `{"${longName}":1}`)
    const reply = await run(name, FALLBACK)
    const answer = answerOf(reply)
    const problems = answer.problems ?? []
    expect(problems.map(({ path }) => path)).to.include('/answer')
    expect(JSON.stringify(problems))
      .to.include('answer')
      .and.have.length.below(10 * 600)
    expect(answer).to.deep.include({ flow_id: name, verdict: 'invalid_output', output: null, served_instance: 'main' })
    expect(bench.main.requests).to.have.length(3)
    expect(lastOf(bench.main.requests[2] as Received)).to.include('/answer must be a string')
    expect(bench.spare.requests).to.be.empty
    const record = await bench.dispatch(reply)
    expect(record).to.include({ status: 'invalid_output', output: null, error: null, turns: 3 })
    expect(record).to.deep.include({ problems })
    const frames = await (await bench.product.stream(`/dispatches/${answer.trace_id}/events`)).all()
    const [first, second, third] = frames
      .filter(({ event }) => event === 'progress')
      .map(({ data }) => data['problems'])
    expect(first).to.equal(undefined)
    expect(second).to.have.nested.property('[0].message').that.includes('is not JSON')
    expect(third).to.deep.equal([{ path: '/answer', message: 'must be a string, not a number' }])
    expect(frames.at(-1)).to.deep.nested.include({
      event: 'result',
      'data.problems': problems,
      'data.verdict': 'invalid_output',
      'data.output': null,
    })
    const { body } = await call('GET', `/dispatches?flow=${name}&status=invalid_output`)
    expect(body).to.have.nested.property('dispatches[0].trace_id', answer.trace_id)
  })

  it('a provider that fails between two tries moves the call to the fallback, which starts anew', async () => {
    bench.main.answer('wrong', { status: 401 })
    expect(answerOf(await run(name, FALLBACK))).to.include({ verdict: 'ok', served_instance: 'spare' })
    expect(bench.spare.requests).to.have.length(1)
    expect(rolesOf(bench.spare.requests[0] as Received)).to.deep.equal(['system', 'user'])
  })

  it('a sub-agent corrects itself too, and is named in a 502 when it cannot', async () => {
    const sub = { name: 'risk', prompt: 'You find risks.', output_schema: textSchema('risk') }
    const flow = await publish({ ...DEFINITION, sub_agents: [sub] })
    bench.main.answer('wrong', '{"risk":"low"}')
    expect(answerOf(await run(flow)).verdict).to.equal('ok')
    bench.main.otherwise(() => 'wrong')
    const reply = await run(flow, FALLBACK)
    expect(reply.status).to.equal(502)
    expect(messageOf(reply)).to.match(/^sub-agent risk failed at instance main: .*3 tries/)
    expect(bench.spare.requests).to.be.empty
    expect(bench.main.requests).to.have.length(3 + 3)
    expect(await bench.dispatch(reply)).to.include({ status: 'error', output: null })
  })

  it('outputs of any JSON type are checked and returned as they are', async () => {
    for (const [schema, output] of [
      [{ type: 'array', items: { type: 'integer' } }, [1, 2]],
      [{ enum: ['a', 'b'] }, 'b'],
      [{ type: 'number' }, 1.5],
      [{ type: 'null' }, null],
      [{}, { a: { b: [true, 'ü', '\u2028'] } }],
    ] as const) {
      const flow = await publish({ ...DEFINITION, output_schema: schema })
      bench.main.answer(JSON.stringify(output))
      const reply = await run(flow)
      expect(answerOf(reply)).to.deep.include({ verdict: 'ok', output })
      expect((await bench.dispatch(reply))['output']).to.deep.equal(output)
    }
  })

  describe('structured output', () => {
    it('is asked of a provider that may have it, with the schema of the flow', async () => {
      await run(name)
      const [request] = bench.main.requests as [Received]
      expect(formOf(request)).to.deep.nested.include({
        type: 'json_schema',
        'json_schema.schema': DEFINITION.output_schema,
      })
    })

    it('is left out for the rest of the call when the provider rejects it', async () => {
      bench.main.otherwise((request) => {
        if (formOf(request) !== undefined) return { status: 400, message: 'response_format is not supported' }
        return bench.main.requests.length === 2 ? 'wrong' : GOOD
      })
      const reply = await run(name, FALLBACK)
      expect(answerOf(reply)).to.include({ verdict: 'ok', served_instance: 'main' })
      expect(bench.main.requests.map((request) => formOf(request) !== undefined)).to.deep.equal([true, false, false])
      expect(await bench.dispatch(reply)).to.include({ turns: 2 })
    })

    it('is not asked of a model whose probe says that it has none', async () => {
      const refuse = (request: Received) => formOf(request) !== undefined
      bench.spare.otherwise((request) => (refuse(request) ? { status: 400 } : GOOD))
      await putInstance(bench, 'plain', { url: bench.spare.url, key: KEYS.spare })
      const probe = await call('POST', '/config/instances/plain/probe', { model: 'm-1' })
      expect(probe.body).to.have.nested.property('capabilities.structured_output', false)
      bench.spare.requests.length = 0
      expect(answerOf(await run(name, { provider_instance: 'plain' })).verdict).to.equal('ok')
      expect(bench.spare.requests.map(formOf)).to.deep.equal([undefined])
    })
  })

  const messageOf = ({ body }: Reply) => (body as { error: { message: string } }).error.message
})

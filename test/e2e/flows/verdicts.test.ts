import { expect } from 'chai'
import { answerOf, DEFINITION, GOOD, lastOf, useFlows } from '../../support/flows.ts'
import type { Received } from '../../support/model-server/model-server.ts'
import { inStandaloneForm } from '../../support/product.ts'

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
})

// Tests call-routes.ts and agent.ts: the form that a provider gives an output.

import { expect } from 'chai'
import { StructuredOutputs } from '../../../../shared/work/flows/execute/call-routes.ts'
import type { Answer, Received } from '../../../support/model-server/model-server.ts'
import { type Bench, flowOf, GOOD, isFrom, lastOf, SCHEMA, useBench } from './setup.ts'

const REJECTED: Answer = { status: 400, message: 'response_format is not supported' }
const formOf = ({ body }: Received) => body['response_format']
const hasForm = (request: Received) => formOf(request) !== undefined

describe('structured output by the provider', () => {
  let bench: Bench
  useBench((opened) => (bench = opened))

  it("is asked for in every request, with the agent's name and schema", async () => {
    bench.server().otherwise((_request, index) => (index === 1 ? 'no' : GOOD))
    await bench.play(flowOf(['critic']))
    const named = (name: string) => ({ type: 'json_schema', json_schema: { name, schema: SCHEMA, strict: true } })
    expect(bench.server().requests.map(formOf)).to.deep.equal([named('critic'), named('review'), named('review')])
  })

  it('is not asked for where a probe has said no, of this instance and model', async () => {
    bench.server().otherwise(() => GOOD)
    const asked: string[] = []
    const supportsStructuredOutput = async (instance: string, model: string) => {
      asked.push(`${instance} ${model}`)
      return model === 'm1' ? false : undefined
    }
    await bench.play(flowOf(['critic'], { model: 'm9' }), { supportsStructuredOutput })
    expect(bench.server().requests.map((request) => [request.model, hasForm(request)])).to.deep.equal([
      ['m9', true],
      ['m1', false],
    ])
    expect(asked).to.deep.equal(['one m9', 'one m1'])
  })

  it('is given up for the rest of the call when the provider rejects it, without counting as a try', async () => {
    bench.server().otherwise((request) => {
      if (hasForm(request)) return REJECTED
      return isFrom('critic', request) || lastOf(request).startsWith('Your answer') ? GOOD : 'no'
    })
    const { outcome } = await bench.play(flowOf(['critic']))
    expect(outcome).to.include({ status: 'ok', turns: 3 })
    expect(bench.server().requests.map(hasForm)).to.deep.equal([true, false, false, false])
    const prompts = bench.server().requests.map(({ body }) => (body['messages'] as unknown[]).length)
    expect(prompts, 'no message is sent twice').to.deep.equal([2, 2, 2, 4])
  })

  it('a rejection without it is final, and does not switch to the fallback', async () => {
    bench.server().otherwise(() => REJECTED)
    const { outcome } = await bench.play({ fallback: { instance: 'two', model: 'm2' } })
    expect(outcome.error).to.include({ status: 502, code: 'provider_rejected' })
    expect(bench.server().requests.map(hasForm)).to.deep.equal([true, false])
    expect(bench.server('two').requests).to.deep.equal([])
  })

  it('a rejection for another reason is not tried without it', async () => {
    bench.server().otherwise((_request, index) => (index === 0 ? [{ tool: 'Nothing' }] : { status: 400 }))
    expect((await bench.play()).outcome.error).to.include({ code: 'provider_rejected' })
    expect(bench.server().requests).to.have.length(2)
    bench.server().requests.length = 0
    bench.server().answer({ status: 402 })
    expect((await bench.play()).outcome.error).to.include({ code: 'provider_rejected' })
    expect(bench.server().requests).to.have.length(1)
  })

  it('is tried when the store of probes does not answer', async () => {
    const outputs = new StructuredOutputs(() => Promise.reject(new Error('no store')))
    expect(await outputs.of({ instance: 'one', model: 'm1' }).isUsed()).to.equal(true)
  })
})

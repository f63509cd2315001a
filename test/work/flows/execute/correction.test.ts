// Tests agent.ts: the tries of an agent until its output is valid.

import { expect } from 'chai'
import { correctionPrompt } from '../../../../shared/agent/engine/answers/output.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { createSchemaCheckers } from '../../../../shared/platform/schemas/checker.ts'
import type { Received } from '../../../support/model-server/model-server.ts'
import { type Bench, flowOf, GOOD, INPUT, isFrom, lastOf, MISSING, useBench } from './setup.ts'

const FALLBACK = { instance: 'two', model: 'm2' }

describe('the correction of a wrong output', () => {
  let bench: Bench
  useBench((opened) => (bench = opened))

  const rolesAndTexts = ({ body }: Received) =>
    (body['messages'] as { role: string; content: string }[]).slice(1).map(({ role, content }) => [role, content])

  it('api.md "Named flows" 5: the agent reads the precise problems in the same conversation, and may try three times', async () => {
    bench.server().answer('I think so.', '{"reply":"yes"}', GOOD)
    const { outcome } = await bench.play()
    expect(outcome).to.deep.include({ status: 'ok', output: { answer: 'yes' }, raw_output: GOOD, turns: 3 })
    const notJson = `is not JSON: Unexpected token 'I', "I think so." is not valid JSON`
    expect(rolesAndTexts(bench.server().requests[2] as Received)).to.deep.equal([
      ['user', JSON.stringify({ input: INPUT, sub_outputs: {} })],
      ['assistant', 'I think so.'],
      ['user', correctionPrompt([{ path: '', message: notJson }])],
      ['assistant', '{"reply":"yes"}'],
      ['user', correctionPrompt([MISSING])],
    ])
  })

  it('D6.4: the third wrong output is the verdict invalid_output, with the raw output, and never switches', async () => {
    bench.server().otherwise((_request, index) => `{"reply":${index}}`)
    const { events, outcome } = await bench.play({ fallback: FALLBACK })
    expect(outcome).to.deep.include({
      status: 'invalid_output',
      output: null,
      raw_output: '{"reply":2}',
      served_instance: 'one',
      error: null,
      turns: 3,
    })
    expect(bench.server('two').requests).to.deep.equal([])
    expect(events.map(({ type }) => type)).to.deep.equal(['started', 'progress', 'progress', 'progress'])
  })

  it("the schema checker's own words reach the agent", async () => {
    const checkers = createSchemaCheckers()
    bench.server().answer('{"answer":7,"more":true}', GOOD)
    const { outcome } = await bench.play({}, { checker: checkers.of(DEFAULT_TENANT) })
    await checkers.close()
    expect(outcome).to.include({ status: 'ok', turns: 2 })
    expect(
      lastOf(bench.server().requests[1] as Received)
        .split('\n')
        .slice(1, -1),
    ).to.have.members([
      '- /answer must be a string, not a number',
      '- /more is not allowed: the known properties are answer',
    ])
  })

  it('the output is the text of the last turn, not that of turns with tool calls', async () => {
    bench.server().answer([{ text: '{"answer":"early"}' }, { tool: 'Nothing' }], GOOD)
    const { outcome } = await bench.play()
    expect(outcome).to.deep.include({ output: { answer: 'yes' }, turns: 2 })
  })

  it('api.md "Named flows" 4: a sub-agent whose tries are used up fails the flow, by its name', async () => {
    bench.server().otherwise((request) => (isFrom('critic', request) ? 'no' : GOOD))
    const { outcome } = await bench.play({ ...flowOf(['critic']), fallback: FALLBACK })
    expect(outcome).to.deep.include({ status: 'error', output: null, raw_output: '', served_instance: null, turns: 3 })
    expect(outcome.error).to.deep.equal({
      status: 502,
      type: 'upstream_error',
      message: 'sub-agent critic failed at instance one: its answer did not fit its output_schema in 3 tries',
    })
    expect(bench.server().requests.map(lastOf)).to.have.length(3)
  })

  it('a very long answer is kept up to its limit', async () => {
    bench.server().otherwise(() => [{ text: ['x'.repeat(600_000), 'x'.repeat(600_000)] }])
    const { outcome } = await bench.play()
    expect(outcome.status).to.equal('invalid_output')
    expect(outcome.raw_output.length).to.be.within(1_000_000, 1_000_001)
  })
})

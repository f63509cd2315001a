import { expect } from 'chai'
import type { ModelPart } from '../../../shared/agent/providers/port.ts'
import { play, says200, scripted, USAGE } from './context/setup.ts'

const CUT: ModelPart = { type: 'finish', reason: 'max_tokens', usage: USAGE }
const call = (id: string, input: string): ModelPart => ({ type: 'tool_call', id, toolName: 'Dig', input })

const toolResults = (events: Awaited<ReturnType<typeof play>>['events']) =>
  events.flatMap((event) => (event.type === 'tool_result' ? [`${event.id}: ${event.output}`] : [])).toSorted()

describe('an answer that the output limit cut', () => {
  it('D4.4: ends the run with done, after the warning output_truncated', async () => {
    const { types, warnings, done } = await play(
      scripted([{ type: 'text_delta', text: 'so' }, { type: 'text_end' }, CUT]),
      {},
    )
    expect(types).to.deep.equal(['turn_start', 'text_delta', 'text', 'warning', 'turn_end', 'done'])
    expect(warnings[0]).to.include({ code: 'output_truncated' })
    expect(done).to.include({ stop_reason: 'end_turn' })
  })

  for (const half of ['{"path": "a', '', '{}']) {
    it(`D4.4: its last tool call is not run when its input is ${half || 'empty'}, and the model reads why`, async () => {
      const provider = scripted([call('a', '{"x": 1}'), call('a2', '{}'), call('b', half), CUT], says200('shorter'))
      const { events, types, done, warnings } = await play(provider, { output: 'gold' })
      const [whole, other, cut] = toolResults(events)
      expect([whole, other]).to.deep.equal(['a2: gold', 'a: gold'])
      expect(cut).to.match(/^b: Not run: the output limit was reached/)
      expect(types.filter((type) => type === 'warning')).to.have.length(1)
      expect(warnings[0]?.detail).to.deep.equal({ tool_name: 'Dig' })
      expect(done).to.include({ turn_count: 2 })
      expect(JSON.stringify(provider.requests[1]?.messages)).to.include('output limit was reached')
    })
  }

  it('D4.4: runs its tool calls when they are complete, and goes on', async () => {
    const { events, done, warnings } = await play(scripted([call('a', '{"x": 1}'), CUT]), { output: 'gold' })
    expect(warnings[0]?.detail).to.deep.equal({})
    expect(toolResults(events)).to.deep.equal(['a: gold'])
    expect(done).to.include({ turn_count: 2 })
  })
})

describe('a tool call with invalid arguments', () => {
  it('stays visible to the model as it wrote them', async () => {
    const provider = scripted([call('a', '{"path": '), { ...CUT, reason: 'tool_use' }])
    const { events } = await play(provider, {})
    expect(toolResults(events)[0]).to.include('is not a JSON object')
    const [, , assistant] = [undefined, ...(provider.requests[1]?.messages ?? [])]
    expect(assistant).to.deep.include({ role: 'assistant' })
    expect(JSON.stringify(assistant)).to.include('"invalid_arguments":"{\\"path\\": "')
  })
})

import { expect } from 'chai'
import { renderMemories, renderMessages, renderRuns } from '../../../shared/agent/engine/transcript.ts'
import { calls, gives, says, user } from './context/setup.ts'

const MESSAGES = [user('dig for gold'), calls('1'), gives('1', 'gold'), says('found it')]

describe('a transcript', () => {
  it('of messages holds the tool calls with their inputs and outputs where they are asked for', () => {
    expect(renderMessages(MESSAGES, { maxCharsEach: Infinity, hasToolDetails: true })).to.equal(
      'User: dig for gold\nAssistant calls Dig: {}\nDig gave: gold\nAssistant: found it',
    )
    expect(renderMessages(MESSAGES, { maxCharsEach: Infinity, hasToolDetails: false })).to.equal(
      'User: dig for gold\nAssistant calls Dig\nAssistant: found it',
    )
  })

  it('cuts each text to the limit, by code points', () => {
    const input = {
      role: 'assistant' as const,
      blocks: [{ type: 'tool_use' as const, id: '1', toolName: 'Dig', input: { deep: true } }],
    }
    const messages = [user('😀😀😀'), input, gives('1', '12345'), says('1234')]
    expect(renderMessages(messages, { maxCharsEach: 2, hasToolDetails: true })).to.equal(
      'User: 😀😀…\nAssistant calls Dig: {"…\nDig gave: 12…\nAssistant: 12…',
    )
  })

  it('leaves the thinking out, and is empty without messages', () => {
    const thinking = { role: 'assistant' as const, blocks: [{ type: 'thinking' as const, text: 'hm' }] }
    expect(renderMessages([thinking], { maxCharsEach: Infinity, hasToolDetails: true })).to.equal('')
    expect(renderMessages([], { maxCharsEach: Infinity, hasToolDetails: true })).to.equal('')
  })

  it('of ledger entries holds the time, the input and the output of each, in their order', () => {
    const runs = [
      { timestamp: 't1', input: 'a?', output: 'a!' },
      { timestamp: 't2', input: 'b?', output: 'b!' },
    ]
    expect(renderRuns(runs)).to.equal('[t1] customer: a?\n[t1] answer: a!\n[t2] customer: b?\n[t2] answer: b!')
    expect(renderRuns([])).to.equal('')
  })

  it('D5.3: marks memory entries as such', () => {
    expect(renderMemories(['one', 'two'])).to.equal('- [memory] one\n- [memory] two')
  })
})

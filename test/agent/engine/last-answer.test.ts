import { expect } from 'chai'
import { LastAnswer } from '../../../shared/agent/engine/last-answer.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'

const turn = (number: number): AgentEvent => ({ type: 'turn_start', turn_number: number, model: 'demo' })
const text = (said: string): AgentEvent => ({ type: 'text', text: said })

describe('the answer of an agent', () => {
  it('is the text of its last turn, and empty while that turn has said nothing', () => {
    const answer = new LastAnswer()
    for (const event of [turn(1), text('I look first.'), turn(2), text('It is done.'), text('All of it.')])
      answer.note(event)
    expect(answer.texts).to.deep.equal(['It is done.', 'All of it.'])
    expect(answer.text).to.equal('It is done.\nAll of it.')
    answer.note(turn(3))
    expect(answer.text).to.equal('')
  })
})

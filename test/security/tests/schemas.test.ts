import { expect } from 'chai'
import { answerHostile, isSendable } from '../schemas/attack.ts'
import { loopDelays } from '../schemas/loop-delay.ts'

describe('the attack with hostile schemas', () => {
  it('lets the model answer the value that the input names, in pieces that a provider may send', () => {
    const value = { text: 'x'.repeat(250_000) }
    const answer = answerHostile([{ name: 'long', schema: {}, value }])
    const [step] = answer({ prompt: JSON.stringify({ input: { hostile: 'long' } }) }) as [{ text: string[] }]
    expect(step.text).to.have.length(3)
    expect(JSON.parse(step.text.join(''))).to.deep.equal(value)
    expect(answer({ prompt: 'other' })).to.deep.equal([{ text: ['{}'] }])
  })

  it('leaves out a schema that is longer as JSON than any body', () => {
    let schema = { type: 'object' } as Record<string, unknown>
    for (let depth = 0; depth < 25; depth++) schema = { if: schema, else: schema }
    expect(isSendable({ name: '', schema, value: {} })).to.equal(false)
    expect(isSendable({ name: '', schema: { enum: [1] }, value: {} })).to.equal(true)
  })
})

describe('the delays of the event loop', () => {
  it('count every timer that a stall has made late', () => {
    const delays = loopDelays([{ ms: 50, busyMs: 50, until: 0 }], 1_000)
    expect(delays).to.have.length(100)
    expect(delays.slice(0, 6)).to.deep.equal([50, 40, 30, 20, 10, 0])
  })
})

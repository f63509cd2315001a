import { expect } from 'chai'
import { type Past, seedOf } from '../../../../services/gateway/dialects/shared/seed.ts'
import { seedHistory } from '../../../../shared/agent/engine/messages/seed.ts'

const user = (text: string): Past => ({ role: 'user', text })
const assistant = (text: string): Past => ({ role: 'assistant', text })
const call = (id: string): Past => ({
  role: 'call',
  call: { id, toolName: 'Read', input: { path: 'a' }, output: 'text', isError: false },
})

describe('the history that a client sends along', () => {
  it('becomes messages that a session can begin with, the calls of tools included', () => {
    const seeds = seedOf([user('a'), assistant('b'), call('x'), call('x'), assistant('c'), user('d'), assistant('e')])
    expect(seeds.map(({ role }) => role).join(' ')).to.equal(
      'user assistant tool assistant tool assistant user assistant',
    )
    expect(seedHistory(seeds)).to.have.length(seeds.length)
  })

  it('takes turns: texts of one side are joined, and what nobody has answered is left out', () => {
    const seeds = seedOf([assistant('hi'), user('a'), user('b'), assistant('c'), assistant('d'), user('e')])
    expect(seeds).to.deep.equal([
      { role: 'user', content: 'a\n\nb' },
      { role: 'assistant', content: 'c\n\nd' },
    ])
  })

  it('an answer without text, or of calls alone, is one all the same', () => {
    const seeds = seedOf([user('a'), call('x'), user('b'), assistant(' ')])
    expect(seedHistory(seeds)).to.have.length(6)
  })

  it('of a history that is too long the newest part is taken, which begins with a message of the user', () => {
    const turns = Array.from({ length: 900 }, (_, i) => [user(`${i}`), assistant('x'.repeat(3_000))]).flat()
    const seeds = seedOf(turns)
    expect(seeds.length).to.be.within(100, 1_000)
    expect(seeds[0]?.role).to.equal('user')
    expect(seeds.at(-2)).to.deep.equal({ role: 'user', content: '899' })
    expect(seedHistory(seeds)).to.have.length(seeds.length)
    expect(seedOf([user('a'), assistant('x'.repeat(2_000_000))])).to.deep.equal([])
  })
})

import { expect } from 'chai'
import { excerpt } from '../../../shared/providers/failures/excerpt.ts'

/** D4.8: no key, no stack, no internal address. */
describe("a provider's own words", () => {
  const PRIVATE = [
    'sk-proj-abc123DEF456',
    'sk-ant-api03-abcdefgh',
    'AIzaSyA1234567890abcdef',
    'Bearer abc.def.ghi',
    'http://10.0.0.7:8000/v1',
    'postgres://user:pw@db/x',
    '192.168.1.20:8000',
    '[fd00::1:2:3]:443',
    'localhost:11434',
    'gateway.corp.internal',
    'api.openai.com',
    'someone@example.com',
    '/srv/app/node_modules/x.js',
    '0123456789abcdef0123456789abcdef',
    'the-very-key',
  ]
  for (const secret of PRIVATE) {
    it(`are told without "${secret}"`, () => {
      const told = excerpt(`before ${secret} after`, 'the-very-key')
      expect(told)
        .to.match(/^before .* ?after$/)
        .and.include('…')
      for (const piece of secret.split(/[^\w-]+/).filter((word) => word.length > 3)) expect(told).not.to.include(piece)
    })
  }

  for (const plain of [
    'claude-sonnet-4-20250514',
    'meta-llama/Llama-3.1-70B',
    'messages.3.content.0.text',
    '200251 tokens > 200000',
    'gpt-4o-2024-08-06',
  ]) {
    it(`keep "${plain}"`, () => expect(excerpt(plain, 'k')).to.equal(plain))
  }

  it('are one line of at most 300 characters', () => {
    const told = excerpt(`a\n\u0007b ${'word '.repeat(1_000)}`, '')
    expect(told)
      .to.match(/^a b word/)
      .and.have.length(300)
  })
})

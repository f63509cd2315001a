import { expect } from 'chai'
import { excerpt } from '../../../../shared/agent/providers/failures/excerpt.ts'

/** D4.8: a message for the caller holds no key, no stack and no internal address. */
describe("the excerpt of a provider's message", () => {
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
    it(`leaves out "${secret}"`, () => {
      const text = excerpt(`before ${secret} after`, 'the-very-key')
      expect(text)
        .to.match(/^before .* ?after$/)
        .and.include('…')
      for (const piece of secret.split(/[^\w-]+/).filter((word) => word.length > 3)) expect(text).not.to.include(piece)
    })
  }

  /** Each is replaced as a whole. */
  const WHOLE = [
    'sk-a1b2c3',
    'sk-a*****',
    'hf_abcdef123456',
    'AIzaSyA1234567890abcdef',
    'bearer   abcdef',
    'https://10.0.0.7:8000/v1/models',
    '192.168.1.20',
    '192.168.1.20:8000',
    'fd00:1:2::3',
    'fd00:1:2:abcd',
    '[fd00:1:2::3]',
    '[fd00::1:2:3]:8443',
    'fe80:::80',
    'localhost:11434/v1',
    'a.b.gateway.corp.internal:8080',
    'first.last@mail.example.community',
    '/srv/app/x.js',
    'abcdefghijklmnopqrstuvwxyz1',
    '1abcdefghijklmnopqrstuvwxyz',
    '0123456789012345678901234a',
  ]
  for (const secret of WHOLE) {
    it(`replaces "${secret}" as a whole`, () => {
      expect(excerpt(`before ${secret} after`, '')).to.equal('before … after')
    })
  }

  for (const plain of [
    'claude-sonnet-4-20250514',
    'meta-llama/Llama-3.1-70B',
    'messages.3.content.0.text',
    '200251 tokens > 200000',
    'gpt-4o-2024-08-06',
    'api-version',
    'key-value-store',
    'sk-a1b2',
    'AIzaSy',
    'a:b and c: d',
    '12:30',
    'abcdefghijklmnopqrstuvwxyzabcdef',
    '012345678901234567890123456789',
    'abcdefghij0123456789abc',
    'either/or',
    'version 1.2.3',
  ]) {
    it(`keeps "${plain}"`, () => expect(excerpt(plain, 'k')).to.equal(plain))
  }

  it('is one text line of at most 300 characters', () => {
    const text = excerpt(`a\n\u0007b ${'word '.repeat(1_000)}`, '')
    expect(text)
      .to.match(/^a b word/)
      .and.have.length(300)
  })

  it('is shortened by code points: 299 are kept whole, and of more the first 299 with a mark', () => {
    expect(excerpt('😀'.repeat(299), '')).to.equal('😀'.repeat(299))
    expect(excerpt('😀'.repeat(301), '')).to.equal(`${'😀'.repeat(299)}…`)
  })

  it('is made of the first 1200 code points, and blanks do not count', () => {
    expect(excerpt(`${' '.repeat(1_199)}ab`, '')).to.equal('a')
  })

  it('replaces the key only when it is longer than 3 characters', () => {
    expect(excerpt('my abc is not my abcd', 'abc')).to.equal('my abc is not my abcd')
    expect(excerpt('my abc is not my abcd, abcd', 'abcd')).to.equal('my abc is not my …, …')
  })

  it('has no blanks at its ends and single blanks within', () => {
    expect(excerpt('  one \t\r\n two\u0000', '')).to.equal('one two')
  })
})

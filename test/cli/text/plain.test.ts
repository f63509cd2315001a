import { expect } from 'chai'
import { plain, plainJson, plainLine } from '../../../services/cli/text/plain.ts'

const ESC = '\u001b'

describe('services/cli/text/plain', () => {
  it('leaves no escape sequence in a text, in whichever form, and no mark that reorders it', () => {
    const hostile = [
      `${ESC}[31mred`,
      `${ESC}]0;title\u0007`,
      '\u009b2J',
      '\u009d0;title\u009c',
      'a\u0008b',
      'c\rd',
      '\u202egpj.exe',
      '\u007f',
    ]
    expect(hostile.map(plain)).to.deep.equal(['[31mred', ']0;title', '2J', '0;title', 'ab', 'cd', 'gpj.exe', ''])
  })

  it('keeps line ends, tabs and every letter', () => {
    expect(plain('a\n\tb Ünïcødé 日本 👩‍💻')).to.equal('a\n\tb Ünïcødé 日本 👩‍💻')
  })

  it('a line has no line ends', () => {
    expect(plainLine(' a\r\n  b\tc ')).to.equal('a b c')
  })

  it('JSON has no control character, and means the same', () => {
    const value = { text: `${ESC}[2J\u009b1m\u007f\n` }
    expect(plainJson(value)).to.not.match(/\p{Cc}/u)
    expect(JSON.parse(plainJson(value))).to.deep.equal(value)
    expect(JSON.parse(plainJson(value, 2))).to.deep.equal(value)
  })
})

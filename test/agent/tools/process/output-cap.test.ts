import { expect } from 'chai'
import { OutputCap } from '../../../../shared/agent/tools/process/bash.ts'

const capOf = (partChars: number, ...texts: string[]) => {
  const cap = new OutputCap(partChars)
  for (const text of texts) cap.add(text)
  return cap
}

describe('the limit of a command’s output', () => {
  it('returns output of up to twice the limit unchanged, in however many pieces it arrives', () => {
    for (const texts of [['abcdefgh'], ['abcd', 'efgh'], ['abc', 'def', 'gh'], 'abcdefgh'.split('')])
      expect(capOf(4, ...texts).text(), texts.join('|')).to.equal('abcdefgh')
    expect(capOf(4).text()).to.equal('')
    expect(capOf(4, 'abcdef').text()).to.equal('abcdef')
    expect(capOf(4, 'abc').text()).to.equal('abc')
  })

  it('keeps the beginning and the end of longer output and says how many characters it left out', () => {
    for (const texts of [['abcdefghi'], ['abcd', 'e', 'fghi'], ['ab', 'cdefg', 'hi'], 'abcdefghi'.split('')])
      expect(capOf(4, ...texts).text(), texts.join('|')).to.equal('abcd\n[… 1 characters left out …]\nfghi')
    expect(capOf(2, 'ab', 'x'.repeat(100), 'yz').text()).to.equal('ab\n[… 100 characters left out …]\nyz')
  })

  it('counts all characters and line breaks, also those that it leaves out', () => {
    const cap = capOf(2, 'a\n', '\n', 'b\nc\n')
    expect([cap.chars, cap.lines]).to.deep.equal([7, 4])
    expect(capOf(2, 'abc').lines).to.equal(0)
  })

  it('shows a replacement character where the limit splits a surrogate pair', () => {
    expect(capOf(1, '😀😀').text()).to.equal('\uFFFD\n[… 2 characters left out …]\n\uFFFD')
  })
})

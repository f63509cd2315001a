import { expect } from 'chai'
import { assert, constantFrom, property, string } from 'fast-check'
import { occurrences } from '../../../../shared/agent/tools/workspace/edit.ts'
import { CountedText } from '../../../support/counted.ts'

/** The simple algorithm, which is slow for some texts. */
function plainOccurrences(text: string, needle: string): number[] {
  const starts: number[] = []
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length)) starts.push(at)
  return starts
}

describe('occurrences', () => {
  it('finds the same places as indexOf in texts with many repetitions', () => {
    const unit = constantFrom('a', 'b')
    const text = string({ unit, maxLength: 60 })
    const needle = string({ unit, minLength: 1, maxLength: 6 })
    const same = property(text, needle, (haystack, part) => {
      expect(occurrences(haystack, part, 1_000)).to.deep.equal(plainOccurrences(haystack, part))
    })
    assert(same, { numRuns: 1_000 })
  })

  it('goes on with the part that it has found already, no more and no less', () => {
    expect(occurrences('aababb', 'aabb', 9)).to.deep.equal([])
    expect(occurrences('aaaab', 'aaab', 9)).to.deep.equal([1])
    expect(occurrences('aabaaabaaaa', 'aabaaaa', 9)).to.deep.equal([4])
  })

  it('looks at each character of both texts a few times', () => {
    const text = new CountedText('ab'.repeat(20_000))
    const needle = new CountedText(`${'ba'.repeat(2_000)}c${'ab'.repeat(2_000)}`)
    expect(occurrences(text.text, needle.text, 9)).to.deep.equal([])
    expect(text.looked + needle.looked).to.be.below(5 * (text.length + needle.length))
  })

  it('returns at most the requested number', () => {
    expect(occurrences('aaaaaa', 'aa', 2)).to.deep.equal([0, 2])
  })
})

import { expect } from 'chai'
import { assert, constantFrom, property, string } from 'fast-check'
import { clip } from '../../../shared/tools/clip.ts'
import { occurrences } from '../../../shared/tools/workspace/occurrences.ts'

/** The obvious way, which is slow for some texts. */
function plainOccurrences(text: string, needle: string): number[] {
  const starts: number[] = []
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length)) starts.push(at)
  return starts
}

describe('occurrences', () => {
  it('finds what indexOf finds, whatever repeats in text and needle', () => {
    const unit = constantFrom('a', 'b')
    const text = string({ unit, maxLength: 60 })
    const needle = string({ unit, minLength: 1, maxLength: 6 })
    const same = property(text, needle, (haystack, part) => {
      expect(occurrences(haystack, part, 1_000)).to.deep.equal(plainOccurrences(haystack, part))
    })
    assert(same, { numRuns: 1_000 })
  })

  it('stops at the number asked for', () => {
    expect(occurrences('aaaaaa', 'aa', 2)).to.deep.equal([0, 2])
  })
})

describe('clip', () => {
  it('cuts before a character of two units rather than through it', () => {
    expect(clip('a😀b', 4)).to.equal('a😀b')
    expect(clip('a😀bc', 3)).to.equal('a😀…')
    expect(clip('a😀bc', 2)).to.equal('a…')
  })
})

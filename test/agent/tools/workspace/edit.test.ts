import { expect } from 'chai'
import fc from 'fast-check'
import { applyEdit } from '../../../../shared/agent/tools/workspace/edit.ts'

const apply = (before: string, old_string: string, new_string: string, replace_all = false) =>
  applyEdit(before, { path: 'a.txt', old_string, new_string, replace_all })

describe('the edit of a text', () => {
  it('replaces occurrences at the beginning, in the middle and at the end', () => {
    expect(apply('a-b-c', '-', '+', true)).to.deep.equal({ text: 'a+b+c', count: 2 })
    expect(apply('-a-', '-', '', true)).to.deep.equal({ text: 'a', count: 2 })
    expect(apply('abc', 'abc', 'x')).to.deep.equal({ text: 'x', count: 1 })
    expect(apply('aaaa', 'aa', 'b', true)).to.deep.equal({ text: 'bb', count: 2 })
  })

  it('replaces up to 100,000 occurrences', () => {
    expect(apply('x'.repeat(100_000), 'x', 'y', true)).to.include({ count: 100_000 })
    expect(() => apply('x'.repeat(100_001), 'x', 'y', true)).to.throw('found more than 100000 times')
  })

  it('lets a text grow to exactly 10 MiB', () => {
    const half = 5 * 1024 * 1024
    expect(apply('ab', 'b', 'x'.repeat(2 * half - 1)).text).to.have.length(2 * half)
    expect(() => apply('ab', 'b', 'x'.repeat(2 * half))).to.throw('would grow beyond')
    expect(apply('x'.repeat(100), 'x', '', true).text).to.equal('')
  })

  it('inserts lines with the end of the line in which they stand, and keeps every other line end', () => {
    expect(apply('a\r\nb\r\n', 'a\nb', 'c\nd').text).to.equal('c\r\nd\r\n')
    expect(apply('a\r\nb\r\n', 'a', 'c\nd').text).to.equal('c\r\nd\r\nb\r\n')
    expect(apply('a\r\nb', 'b', 'c\nd').text).to.equal('a\r\nc\r\nd')
    expect(apply('a\nb\r\nc\n', 'b', 'b\nx').text).to.equal('a\nb\r\nx\r\nc\n')
    expect(apply('a\nb\n', 'a\nb', 'c\nd').text).to.equal('c\nd\n')
    expect(apply('a\nb\r\nc\nd\n', 'b\nc', 'b\nx\nc').text).to.equal('a\nb\r\nx\nc\nd\n')
    expect(apply('a\r\nb', '\nb', 'b').text).to.equal('ab')
    expect(apply('a\r\n', 'a\n', '').text).to.equal('')
  })

  it('finds several lines whatever they end with, and of several places the one with the very characters', () => {
    expect(apply('stray\r\na\nb\n', 'a\nb', 'c').text).to.equal('stray\r\nc\n')
    expect(apply('a\r\nb\nc\n', 'a\nb\nc', 'a\nb\nd').text).to.equal('a\r\nb\nd\n')
    expect(apply('a\r\nb a\nb', 'a\nb', 'c').text).to.equal('a\r\nb c')
    expect(apply('a\r\nb a\nb', 'a\nb', 'c', true)).to.deep.equal({ text: 'c c', count: 2 })
    expect(() => apply('a\r\nb a\r\nb', 'a\nb', 'c')).to.throw('found 2 times')
  })

  it('takes carriage returns as they are written', () => {
    expect(apply('a\r\nb\r\n', 'a\r\nb', 'c\nd').text).to.equal('c\nd\r\n')
    expect(apply('a\r\nb\r\n', 'a\nb', 'c\r\nd').text).to.equal('c\r\nd\r\n')
    expect(apply('a\nb\n', 'a\nb', 'a\r\nb').text).to.equal('a\r\nb\n')
    expect(() => apply('a\nb\n', 'a\r\nb', 'c')).to.throw('not found')
    expect(() => apply('a\r\nb', 'a\nb', 'a\r\nb')).to.throw('nothing would change')
  })

  const LINES = fc.array(fc.tuple(fc.stringMatching(/^[ab]{0,3}$/), fc.constantFrom('\n', '\r\n')), { maxLength: 8 })
  const TEXT = fc.stringMatching(/^[ab\n]{0,6}$/)

  it('changes no byte outside of the text that it replaces, in files of mixed line ends', () => {
    fc.assert(
      fc.property(LINES, TEXT, fc.nat(), fc.nat(), (lines, new_string, from, length) => {
        const before = lines.flat().join('')
        const shown = lines.map(([line]) => `${line}\n`).join('')
        const start = from % (shown.length + 1)
        const old_string = shown.slice(start, start + (length % 8) + 1)
        const isOnly = [shown.indexOf(old_string), shown.lastIndexOf(old_string)].every((at) => at === start)
        if (old_string === '' || old_string === new_string || !isOnly) return
        const { text } = apply(before, old_string, new_string)
        expect(text.replaceAll('\r\n', '\n')).to.equal(shown.replace(old_string, new_string))
        const ends = (each: string) => each.match(/\r?\n/g) ?? []
        const linesBefore = shown.slice(0, start).split('\n').length - 1
        const linesBehind = shown.slice(start + old_string.length).split('\n').length - 1
        expect(ends(text).slice(0, linesBefore)).to.deep.equal(ends(before).slice(0, linesBefore))
        const last = (all: string[]) => all.slice(all.length - linesBehind)
        expect(last(ends(text))).to.deep.equal(last(ends(before)))
        const only = new Set(ends(before))
        if (only.size === 1) expect([...only]).to.include.members(ends(text))
      }),
      { numRuns: 500 },
    )
  })
})

import { expect } from 'chai'
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

  it('adds carriage returns only to texts of several lines without any, in a file that has CRLF', () => {
    expect(apply('a\r\nb\r\n', 'a\nb', 'c\nd').text).to.equal('c\r\nd\r\n')
    expect(apply('a\r\nb\r\n', 'a\r\nb', 'c\nd').text).to.equal('c\nd\r\n')
    expect(apply('a\r\nb\r\n', 'a', 'c\nd').text).to.equal('c\nd\r\nb\r\n')
    expect(apply('a\nb\n', 'a\nb', 'c\nd').text).to.equal('c\nd\n')
    expect(apply('a\r\nb\r\n', 'a\nb', 'c\r\nd').text).to.equal('c\r\nd\r\n')
    expect(() => apply('a\nb\n', 'a\r\nb', 'c')).to.throw('not found')
  })
})

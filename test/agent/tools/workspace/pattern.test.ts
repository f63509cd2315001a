import { expect } from 'chai'
import { compileGlob, compileRegex } from '../../../../shared/agent/tools/workspace/pattern.ts'

const refusalOf = (call: Promise<unknown>) =>
  call.then(
    () => 'accepted',
    (cause: Error) => cause.message,
  )

describe('search patterns', () => {
  it('a regular expression may have 500 characters and a glob 256', async () => {
    expect(await refusalOf(compileRegex('x'.repeat(500)))).to.equal('accepted')
    expect(await refusalOf(compileRegex('x'.repeat(501)))).to.equal('The pattern is longer than 500 characters.')
    expect(await refusalOf(compileGlob('x'.repeat(256)))).to.equal('accepted')
    expect(await refusalOf(compileGlob('x'.repeat(257)))).to.equal('The glob is longer than 256 characters.')
  })

  it('a glob must be relative and without ".." as a name', async () => {
    for (const glob of ['/a', '..', '../a', 'a/..', 'a/../b'])
      expect(await refusalOf(compileGlob(glob)), glob).to.equal(
        `${glob}: give a glob relative to the workspace, without "..".`,
      )
    for (const glob of ['..a', 'a..', 'a..b/c']) expect(await refusalOf(compileGlob(glob)), glob).to.equal('accepted')
  })

  it('an invalid expression is refused with the reason, and one that is too large as too complex', async () => {
    expect(await refusalOf(compileRegex('('))).to.match(/^The pattern is not valid: .*It must be in RE2 syntax/)
    expect(await refusalOf(compileRegex('(a{1,30}){1,100}'))).to.match(/too complex|not valid/)
    expect(await refusalOf(compileRegex('a{900}'))).to.equal('accepted')
    expect(await refusalOf(compileRegex('a{1000}b'))).to.match(/^The pattern is too complex/)
  })

  it('a large expression is tested on shorter pieces, but never on pieces above 16,384 characters', async () => {
    const [small, large] = [await compileRegex('a'), await compileRegex('a{900}')]
    expect(small.pieceChars).to.equal(16_384)
    expect(large.pieceChars).to.be.within(140, 170)
    expect([small.test('bab'), small.test('bbb')]).to.deep.equal([true, false])
  })

  it('a glob matches whole paths, names that begin with a dot included', async () => {
    const matches = async (glob: string, ...paths: string[]) => {
      const test = await compileGlob(glob)
      return paths.filter(test)
    }
    expect(await matches('*', 'a', '.a', 'a/b')).to.deep.equal(['a', '.a'])
    expect(await matches('**', 'a', '.a/b', 'a/b/c')).to.deep.equal(['a', '.a/b', 'a/b/c'])
    expect(await matches('a/**', 'a/b', 'a/.b/c', 'b/a')).to.deep.equal(['a/b', 'a/.b/c'])
    expect(await matches('**/x', 'x', 'a/x', 'ax', 'x/a')).to.deep.equal(['x', 'a/x'])
    expect(await matches('a?c', 'abc', 'a/c', 'ac')).to.deep.equal(['abc'])
    expect(await matches('!a', '!a', 'b')).to.deep.equal(['!a'])
    expect(await matches('+(a)', '+(a)', 'a', 'aa')).to.not.include('aa')
    expect(await matches('[[:digit:]]', '1', 'a')).to.deep.equal(['1'])
  })
})

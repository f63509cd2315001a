import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { makeTempFolder, useTempFolder } from './temp-folder.ts'

describe('the temporary folders of tests', () => {
  const paths = new Set<string>()
  const isThere = (path: string) => {
    paths.add(path)
    return existsSync(path)
  }

  describe('one for a `describe`', () => {
    const folder = useTempFolder()
    before(() => expect(isThere(folder.path)).to.equal(true))
    for (const test of ['first', 'second'])
      it(`is the same in its ${test} test`, () => {
        expect(isThere(folder.path)).to.equal(true)
        expect(paths.size).to.equal(1)
      })
    after('is still there for its hooks', () => expect(isThere(folder.path)).to.equal(true))
  })

  describe('one for each test', () => {
    const folder = useTempFolder({ perTest: true })
    for (const [index, test] of ['first', 'second'].entries())
      it(`is a new one in the ${test} test`, () => {
        expect(isThere(folder.path)).to.equal(true)
        expect(paths.size).to.equal(2 + index)
      })
    afterEach('is still there for its hooks', () => expect(isThere(folder.path)).to.equal(true))
  })

  describe('one for a block', () => {
    it('is removed at its end', async () => {
      let path: string
      {
        await using folder = await makeTempFolder()
        path = folder.path
        expect(isThere(path)).to.equal(true)
      }
      expect(isThere(path)).to.equal(false)
    })
  })

  describe('those of earlier tests', () => {
    it('are removed', () => {
      expect(paths.size).to.equal(4)
      expect([...paths].filter(isThere)).to.deep.equal([])
    })
  })
})

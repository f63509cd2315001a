import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { type ConsoleSizes, measureConsole } from '../../scripts/console-sizes.ts'

const root = new URL('../../', import.meta.url).pathname
const KB = 1_024
const PAGES = ['home', 'chat', 'approvals', 'flows', 'plans', 'activity', 'usage', 'settings']

describe('the size of the console, as gzip', () => {
  let sizes: ConsoleSizes

  before(async () => {
    await promisify(execFile)(`${root}scripts/build-console`)
    sizes = measureConsole(`${root}services/console/built`)
  })

  it('the shell has at most 25 KB', () => {
    expect(sizes.shell).to.be.within(10 * KB, 25 * KB)
  })

  it('each page has at most 60 KB, with the shell and everything that it needs', () => {
    const names = [...sizes.routes.keys()].join()
    for (const page of PAGES) expect(names).to.include(`pages/${page}/${page}.tsx`)
    const tooLarge = [...sizes.routes].filter(([, size]) => size > 60 * KB)
    expect(tooLarge).to.deep.equal([])
  })
})

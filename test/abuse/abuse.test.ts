import { expect } from 'chai'
import { brokenRows, runScript } from '../harness/run-script.ts'

const MAIN = new URL('main.ts', import.meta.url)
/** It takes 30 s on a machine without other work. */
const WITHIN_MS = 300_000

describe('the abuse script in its short form', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('P10: slow writers do not affect /health, and each of them is answered 408', async () => {
    const { printed } = await runScript(MAIN, ['--quick', '--sockets', '300'], WITHIN_MS)
    expect(brokenRows(printed), printed).to.deep.equal([])
    expect(printed).to.include('slow headers answered 408')
  })
})

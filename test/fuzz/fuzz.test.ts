import { expect } from 'chai'
import { brokenRows, runScript } from '../harness/run-script.ts'

const MAIN = new URL('main.ts', import.meta.url)
/** It takes 30 s on a machine without other work. */
const WITHIN_MS = 300_000

describe('the fuzz script in its short form', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('P12: hostile input never causes a 5xx, a crash, a stall or a change of other data', async () => {
    const { printed } = await runScript(MAIN, ['--quick', '--seed', '1'], WITHIN_MS)
    expect(brokenRows(printed), printed).to.deep.equal([])
    expect(printed, printed)
      .to.include('generated cases')
      .and.not.match(/^\d+ findings/m)
  })
})

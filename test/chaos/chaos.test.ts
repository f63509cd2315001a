import { expect } from 'chai'
import { runScript } from '../harness/run-script.ts'

const MAIN = new URL('main.ts', import.meta.url)
/** The short forms of the others are the tests that test/README.md names. */
const PROMISES = 'P1,P2,P3,P4,P21,P22,P23'
/** It takes a minute on a machine without other work. */
const WITHIN_MS = 900_000

describe('the chaos script', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('P1 to P4, P21 to P23: in the short form the cluster keeps its promises under faults, durations and sizes aside', async () => {
    const { code, printed } = await runScript(MAIN, ['--short', '--untimed', '--only', PROMISES], WITHIN_MS)
    expect(code, printed).to.equal(0)
  })
})

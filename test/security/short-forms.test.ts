import { expect } from 'chai'
import { brokenRows, runScript } from '../harness/run-script.ts'

const MAIN = new URL('main.ts', import.meta.url)
/** It takes less than a minute on a machine without other work. */
const WITHIN_MS = 180_000

/** Not the line that sums up, nor rows that other work on the machine changes. */
const isJudged = (row: string) => !/^(memory of the gateway|time |BROKEN: )/.test(row)

describe('the security script in its short form', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('P11, P14, P16, P17: tenants, addresses, keys and uploads stay within their walls, times and memory aside', async () => {
    const { printed } = await runScript(MAIN, ['--short'], WITHIN_MS)
    expect(brokenRows(printed).filter(isJudged), printed).to.deep.equal([])
    for (const id of ['P11', 'P14', 'P16', 'P17'])
      expect(printed).to.match(new RegExp(`^${id}: .*\\n(.*kept.*\\n)+`, 'm'))
  })

  it('refuses an unknown promise before it starts anything', async () => {
    const { code, printed } = await runScript(MAIN, ['--only', 'P99'], WITHIN_MS)
    expect(code).to.not.equal(0)
    expect(printed).to.include('no scenario tests P99: choose from P11, P14, P16, P17')
  })
})

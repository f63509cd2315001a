import { expect } from 'chai'
import { runScript } from '../harness/run-script.ts'

const MAIN = new URL('main.ts', import.meta.url)
/** It takes two minutes on a machine without other work, and four beside other tests. */
const WITHIN_MS = 540_000

describe('the security script in its short form', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('P11, P13, P14, P16, P17, P20: tenants, schemas, addresses, keys and uploads stay within their walls and shares, durations and sizes aside', async () => {
    const { code, printed } = await runScript(MAIN, ['--short', '--untimed'], WITHIN_MS)
    expect(code, printed).to.equal(0)
    for (const id of ['P11', 'P13', 'P14', 'P16', 'P17', 'P20'])
      expect(printed).to.match(new RegExp(`^${id}: .*\\n(.*kept.*\\n)+`, 'm'))
  })
})

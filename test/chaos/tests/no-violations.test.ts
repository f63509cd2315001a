import { expect } from 'chai'
import { isKept } from '../../harness/guarantee.ts'
import { noViolations } from '../checker.ts'

describe('the guarantee about violations', () => {
  it('is broken by a violation, and shows the count and the first one of each rule', () => {
    const guarantee = noViolations([
      { rule: 'stream-altered', what: 'a hole', evidence: [] },
      { rule: 'stream-altered', what: 'another', evidence: [] },
      { rule: 'stream-without-end', what: 'hung', evidence: [] },
    ])
    expect(isKept(guarantee)).to.equal(false)
    expect(guarantee.detail).to.equal('stream-altered x 2: a hole; stream-without-end x 1: hung')
    expect(isKept(noViolations([]))).to.equal(true)
  })
})

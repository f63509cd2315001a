import { expect } from 'chai'
import { isKept } from '../../harness/guarantee.ts'
import { allOf, none, quantileOf, slowest, violations } from '../figures.ts'
import { tally } from '../load.ts'
import { judgeOutage, type Probe } from '../prober.ts'
import type { Ended } from '../stream-client.ts'

const probe = (at: number, status: number, ms = 10): Probe => ({ at, status, ms })
const OUTAGE = { from: 1_000, to: 6_000 }

describe('a scenario’s figures', () => {
  it('nothing measured keeps no promise', () => {
    const empty = [slowest('a', [], 1e9), quantileOf('b', [], { part: 0.5, atMost: 1e9 }), allOf('c', 0, 0)]
    expect(empty.filter(isKept)).to.deep.equal([])
  })

  it('one that is too slow, missing, or forbidden breaks the promise', () => {
    expect(isKept(slowest('a', [1, 2, 5001], 5000))).to.equal(false)
    expect(isKept(slowest('a', [1, 2, 5000], 5000))).to.equal(true)
    expect(isKept(quantileOf('b', [1, 10, 100], { part: 0.5, atMost: 9 }))).to.equal(false)
    expect(isKept(allOf('c', 9, 10))).to.equal(false)
    expect(isKept(allOf('c', 10, 10))).to.equal(true)
    expect(isKept(none('d', 1))).to.equal(false)
  })

  it('violations are told by rule, with the first of each', () => {
    const found = violations([
      { rule: 'N5', what: 'a hole', evidence: [] },
      { rule: 'N5', what: 'another', evidence: [] },
      { rule: 'N1', what: 'hung', evidence: [] },
    ])
    expect(isKept(found)).to.equal(false)
    expect(found.detail).to.equal('N5 x 2: a hole; N1 x 1: hung')
    expect(isKept(violations([]))).to.equal(true)
  })

  it('how streams ended is counted in words', () => {
    const ended = (rest: Partial<Ended>): Ended => ({
      status: 200,
      openedInMs: 1,
      how: 'ended',
      terminal: undefined,
      ...rest,
    })
    const terminal = (event: string, code?: string) => ({ event, code, t: 0, goesOn: false })
    const ends = [
      ended({ terminal: terminal('done') }),
      ended({ terminal: terminal('done') }),
      ended({ terminal: terminal('error', 'worker_lost') }),
      ended({ how: 'reset' }),
      ended({ status: 0, how: 'reset' }),
      undefined,
    ]
    expect(tally(ends)).to.equal('2 done, 1 worker_lost, 1 reset, 1 no answer, 1 never')
  })
})

describe('the judge of an outage', () => {
  it('P3: new work is 503 while Redis is away and taken again when it is back', () => {
    const fared = judgeOutage(
      [probe(900, 201), probe(1_100, 503, 30), probe(5_990, 201, 40), probe(6_100, 503, 5), probe(6_500, 201)],
      OUTAGE,
    )
    expect(fared).to.deep.equal({ wrong: [], refusedInMs: [30], normalAfterMs: 105 })
  })

  it('P3: an acceptance, another status or no answer while Redis is away is wrong', () => {
    const { wrong } = judgeOutage(
      [probe(2_000, 201), probe(2_100, 500), probe(2_200, 0, 15_000), probe(2_300, 404)],
      OUTAGE,
    )
    expect(wrong.map(({ at }) => at)).to.deep.equal([2_000, 2_100, 2_200, 2_300])
  })

  it('P3: service that never becomes normal is not normal', () => {
    expect(judgeOutage([probe(2_000, 503), probe(7_000, 503)], OUTAGE).normalAfterMs).to.equal(undefined)
    expect(judgeOutage([probe(2_000, 503)], OUTAGE).normalAfterMs).to.equal(undefined)
    expect(judgeOutage([probe(7_000, 201), probe(9_000, 503, 5), probe(9_500, 201)], OUTAGE).normalAfterMs).to.equal(
      3_005,
    )
  })
})

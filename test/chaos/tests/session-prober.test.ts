import { expect } from 'chai'
import { assessOutage, type Probe } from '../session-prober.ts'

const probe = (at: number, status: number, ms = 10): Probe => ({ at, status, ms })
const OUTAGE = { from: 1_000, to: 6_000 }

describe('the assessment of an outage of Redis', () => {
  it('P3: new work is 503 while Redis is away and accepted when it is back', () => {
    const result = assessOutage(
      [probe(900, 201), probe(1_100, 503, 30), probe(5_990, 201, 40), probe(6_100, 503, 5), probe(6_500, 201)],
      OUTAGE,
    )
    expect(result).to.deep.equal({ wrong: [], refusedInMs: [30], normalAfterMs: 105 })
  })

  it('P3: acceptance, another status or no answer while Redis is away is wrong', () => {
    const { wrong } = assessOutage(
      [probe(2_000, 201), probe(2_100, 500), probe(2_200, 0, 15_000), probe(2_300, 404)],
      OUTAGE,
    )
    expect(wrong.map(({ at }) => at)).to.deep.equal([2_000, 2_100, 2_200, 2_300])
  })

  it('P3: the service is not normal again before the last refusal is over', () => {
    const normalAfterMs = (...probes: Probe[]) => assessOutage(probes, OUTAGE).normalAfterMs
    expect(normalAfterMs(probe(2_000, 503), probe(7_000, 503))).to.equal(undefined)
    expect(normalAfterMs(probe(2_000, 503))).to.equal(undefined)
    expect(normalAfterMs(probe(7_000, 201), probe(9_000, 503, 5), probe(9_500, 201))).to.equal(3_005)
  })
})

import { expect } from 'chai'
import { KnownHealth, newHealth, type Outcomes, stateOf, withOutcomes } from '../../../shared/agent/providers/health.ts'

const [OK, FAILED, LATE]: [Outcomes, Outcomes, Outcomes] = [
  [1, 0, 0],
  [0, 1, 1],
  [0, 1, 0],
]
const times = (count: number, ...outcomes: Outcomes[]) => Array.from({ length: count }, () => outcomes).flat()

/** The health behind calls, one each second from second 1 on. */
const behind = (outcomes: readonly Outcomes[]) =>
  outcomes.reduce((health, outcome, at) => withOutcomes(health, outcome, 1_000 * (at + 1)), newHealth(0))

describe('the health of a model', () => {
  const CASES: [what: string, outcomes: Outcomes[], isResting: boolean][] = [
    ['no call', [], false],
    ['two failures', times(2, FAILED), false],
    ['three failures in a row', [...times(20, OK), ...times(3, FAILED)], true],
    ['four failures of six calls', [FAILED, FAILED, OK, FAILED, FAILED, OK], false],
    ['two failures of three calls, ten times', times(10, FAILED, FAILED, OK), true],
    ['a failure of three calls, thirty times', times(30, FAILED, OK, OK), false],
    ['three late answers', times(3, LATE), false],
    ['twelve calls, half of them late', times(6, OK, LATE), true],
    ['three failures that another process tells together', [[0, 3, 3]], true],
    ['three failures that it tells behind an answer', [[5, 3, 3]], true],
    ['three failures that it tells before an answer', [[5, 3, 0]], false],
    ['failures that many answers lie between', [FAILED, FAILED, ...times(40, OK), FAILED, FAILED], false],
  ]
  for (const [what, outcomes, isResting] of CASES)
    it(`behind ${what} ${isResting ? 'is bad: it rests' : 'is good'}`, () => {
      expect(stateOf(behind(outcomes), 1_000 * outcomes.length)).to.equal(isResting ? 'unhealthy' : 'healthy')
    })

  it('is tried by one call behind 30 s of rest; an answer ends the rest, and a failure begins it anew', () => {
    const health = new KnownHealth()
    for (let at = 0; at < 3; at++) health.note('failed', at)
    expect([10_000, 30_001, 30_002].map((at) => health.isPassedOver(at))).to.deep.equal([true, true, false])
    expect(health.isPassedOver(30_003)).to.equal(true)
    health.note('late', 31_000)
    expect([60_999, 61_000, 61_001].map((at) => health.isPassedOver(at))).to.deep.equal([true, false, true])
    health.note('answered', 61_002)
    expect(health.isPassedOver(61_003)).to.equal(false)
    expect(health.stateOf(61_003)).to.equal('healthy')
  })

  it('is tried again when the call that tried has not ended within 30 s, and not ended by one that began before', () => {
    const health = new KnownHealth()
    for (let at = 0; at < 3; at++) health.note('failed', at)
    health.note('answered', 20_000)
    expect(health.stateOf(20_000)).to.equal('unhealthy')
    expect([40_000, 69_999, 70_000].map((at) => health.isPassedOver(at))).to.deep.equal([false, true, false])
  })

  it('is told to others once, soon after failures', () => {
    const health = new KnownHealth()
    health.note('answered', 1)
    expect(health.hasNews).to.equal(false)
    health.note('failed', 2)
    expect(health.hasNews).to.equal(true)
    expect(health.takeUntold()).to.deep.equal([1, 1, 1])
    expect(health.hasNews).to.equal(false)
    expect(health.takeUntold()).to.deep.equal([0, 0, 0])
    health.note('failed', 3)
    health.learn({ ...newHealth(3), failed: 2, inRow: 2 }, 4)
    expect(health.stateOf(5), 'what is not told yet counts, too').to.equal('unhealthy')
  })
})

import { expect } from 'chai'
import { type GapLimits, GapRepair } from '../../../../shared/cluster/relay/streams/gap-repair.ts'
import { until } from '../../../support/until.ts'

function setUp({ isReachable = () => true, ...limits }: Partial<GapLimits> & { isReachable?: () => boolean } = {}) {
  const calls: string[] = []
  const repair = new GapRepair(
    {
      request() {
        calls.push('request')
        return isReachable()
      },
      onGap: (state) => calls.push(state),
    },
    { askAgainMs: 2, maxAskAgainMs: 2, ...limits },
  )
  const requests = () => calls.filter((call) => call === 'request').length
  const requested = (times: number) =>
    until(() => requests() >= times, { what: `${times} requests`, everyMs: 1, lastSeen: () => calls })
  return { repair, calls, requests, requested }
}

/** Resolves when a repair that starts now has asked three times: one that started before would have asked again too. */
async function threeRequests(): Promise<void> {
  const clock = setUp()
  clock.repair.start('dropped')
  await clock.requested(3)
  clock.repair.stop()
}

describe('gap repair', () => {
  it('lost frames are requested at once, and counted when they are requested and when they come', () => {
    const { repair, calls } = setUp()
    expect(repair.cause).to.equal(undefined)
    repair.start('lost')
    expect(repair.cause).to.equal('lost')
    repair.filled()
    expect(repair.cause).to.equal(undefined)
    expect(calls).to.deep.equal(['asked', 'request', 'repaired'])
  })

  it('dropped frames are requested and not counted as a gap', () => {
    const { repair, calls } = setUp()
    repair.start('dropped')
    expect(repair.cause).to.equal('dropped')
    repair.filled()
    expect(calls).to.deep.equal(['request'])
  })

  it('a repair that is running is not started again, and keeps its cause', () => {
    const { repair, calls } = setUp()
    repair.start('dropped')
    repair.start('lost')
    expect([calls, repair.cause]).to.deep.equal([['request'], 'dropped'])
    repair.stop()
  })

  it('frames are requested again until they come, and not after that', async () => {
    const { repair, requests, requested } = setUp()
    repair.start('lost')
    await requested(3)
    repair.filled()
    const before = requests()
    await threeRequests()
    expect(requests()).to.equal(before)
  })

  it('a repair that is stopped requests nothing more and reports no success', async () => {
    const { repair, calls } = setUp()
    repair.start('lost')
    repair.stop()
    await threeRequests()
    expect([calls, repair.cause]).to.deep.equal([['asked', 'request'], undefined])
  })

  it('an idle repair ignores that frames came', () => {
    const { repair, calls } = setUp()
    repair.filled()
    repair.stop()
    expect(calls).to.deep.equal([])
  })

  it('a second gap is repaired like the first', async () => {
    const { repair, calls, requested } = setUp()
    repair.start('dropped')
    repair.filled()
    repair.start('lost')
    await requested(3)
    repair.filled()
    expect(calls.slice(0, 3)).to.deep.equal(['request', 'asked', 'request'])
    expect(calls.at(-1)).to.equal('repaired')
  })

  it('frames that do not come are requested for ever, at intervals that double up to a limit', async () => {
    const at: number[] = []
    const { repair, requested } = setUp({
      ...{ askAgainMs: 10, maxAskAgainMs: 40 },
      isReachable: () => at.push(performance.now()) > 0,
    })
    repair.start('lost')
    await requested(6)
    repair.stop()
    const pauses = at.slice(1).map((t, i) => t - (at[i] ?? t))
    // A timer of Node may fire up to a millisecond early.
    for (const [i, wanted] of [10, 20, 40, 40, 40].entries()) expect(pauses[i]).to.be.at.least(wanted - 1)
    expect(repair.cause).to.equal(undefined)
  })

  it('while the worker cannot be asked the interval does not grow', async () => {
    let attempts = 0
    const { repair, requested } = setUp({
      ...{ askAgainMs: 1, maxAskAgainMs: 3_600_000 },
      isReachable: () => ++attempts > 30,
    })
    repair.start('lost')
    await requested(31) // With doubled intervals the 31st request would come after days.
    repair.stop()
  })
})

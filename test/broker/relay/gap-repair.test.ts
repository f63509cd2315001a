import { expect } from 'chai'
import { type GapLimits, GapRepair } from '../../../shared/broker/relay/gap-repair.ts'
import { until } from '../../support/until.ts'

function setUp({ isReachable = () => true, ...limits }: Partial<GapLimits> & { isReachable?: () => boolean } = {}) {
  const calls: string[] = []
  const givenUp = Promise.withResolvers<void>()
  const repair = new GapRepair(
    {
      request() {
        calls.push('request')
        return isReachable()
      },
      onGap: (state) => calls.push(state),
      onGivenUp() {
        calls.push('given up')
        givenUp.resolve()
      },
    },
    { gapMs: 60_000, askAgainMs: 2, ...limits },
  )
  const requests = () => calls.filter((call) => call === 'request').length
  const requested = (times: number) =>
    until(() => requests() >= times, { what: `${times} requests`, everyMs: 1, lastSeen: () => calls })
  return { repair, calls, requests, requested, givenUp: givenUp.promise }
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

  it('the repair gives up once when the frames do not come within gapMs', async () => {
    const { repair, calls, givenUp } = setUp({ gapMs: 20 })
    const startedAt = performance.now()
    repair.start('lost')
    await givenUp
    expect(performance.now() - startedAt).to.be.at.least(20)
    expect(repair.cause).to.equal(undefined)
    expect(calls.filter((call) => call === 'request').length).to.be.above(1)
    const before = [...calls]
    await threeRequests()
    expect(calls).to.deep.equal(before)
  })

  it('the time limit starts anew while the worker cannot be asked', async () => {
    let unreachableAt = 0
    let attempts = 0
    const isReachable = () => {
      if (++attempts > 30) return true
      unreachableAt = performance.now()
      return false
    }
    const { repair, givenUp, requests } = setUp({ gapMs: 100, askAgainMs: 5, isReachable })
    repair.start('lost')
    await givenUp
    expect(requests()).to.be.above(30)
    expect(performance.now() - unreachableAt).to.be.at.least(100)
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { until } from '../../support/until.ts'
import { member, OWN, setUp, useStarts } from './membership-setup.ts'

describe('membership: removing other members', () => {
  const start = useStarts()

  it('a member that is missing from the list is lost, but not before a steady time', async () => {
    const over = Promise.withResolvers<void>()
    const startedAt = performance.now()
    const { membership, transport, lost } = setUp({
      list() {
        if (lost.length > 0) over.resolve()
        return [member(OWN)]
      },
    })
    await start(membership)
    transport.outbox('gateway', 2)
    await over.promise
    expect(performance.now() - startedAt).to.be.at.least(400)
    expect(lost).to.deep.equal([2])
  })

  it('a process that is first called while the list is on its way is not lost by that list', async () => {
    const over = Promise.withResolvers<void>()
    const lostBefore: number[][] = [] // By each listing from the one during which process 3 is called.
    const { membership, transport, lost } = setUp({
      list() {
        if (lost.includes(2)) {
          lostBefore.push([...lost])
          transport.outbox('gateway', 3)
        }
        if (lost.includes(3)) over.resolve()
        return [member(OWN)]
      },
    })
    await start(membership)
    transport.outbox('gateway', 2)
    await over.promise
    expect(lostBefore.slice(0, 2)).to.deep.equal([[2], [2]]) // A busy machine may list more often before it is lost.
    expect(lostBefore.at(-1)).to.deep.equal([2, 3])
  })

  it('members whose lease has run out are expired in the order of the list; they and those that left are lost, once the rest is known', async () => {
    const over = Promise.withResolvers<void>()
    const { membership, transport, calls, lost } = setUp({
      list() {
        if (lost.length > 0) over.resolve()
        return [
          member(5, { expiresInMs: 0 }),
          member(OWN),
          member(4, { expiresInMs: 1 }),
          member(3, { expiresInMs: -1 }),
        ]
      },
    })
    await start(membership)
    transport.outbox('gateway', 7)
    await over.promise
    await until(() => lost.length === 3, { what: 'three members to be lost' })
    expect(calls.filter((call) => call.startsWith('expire'))).to.deep.equal(['expire 5', 'expire 3'])
    expect(lost).to.deep.equal([5, 3, 7])
    for (const epoch of lost) {
      const known = calls.slice(0, calls.indexOf(`lost ${epoch}`)).findLast((call) => call.startsWith('members'))
      expect(known?.slice('members '.length).split(',')).not.to.include(String(epoch))
    }
  })

  it('a member that has renewed before it could be expired stays', async () => {
    const over = Promise.withResolvers<void>()
    const { membership, lost, known } = setUp({
      list: () => [member(OWN), member(2, { expiresInMs: 0 })],
      members: {
        async expire() {
          setImmediate(over.resolve)
          return false
        },
      },
    })
    await start(membership)
    await over.promise
    expect(lost).to.deep.equal([])
    expect(known.at(-1)).to.deep.equal([OWN, 2])
  })

  it('a list without this process evicts no member, and all members stay known', async () => {
    const over = Promise.withResolvers<void>()
    const { membership, transport, lost, known } = setUp({
      list(count) {
        if (count === 12) over.resolve()
        return count === 1 || count > 10 ? [member(OWN), member(2)] : [member(2, { expiresInMs: 0 })]
      },
    })
    await start(membership)
    transport.outbox('gateway', 5)
    await over.promise
    expect(lost).to.deep.equal([])
    expect(known.every((epochs) => epochs.includes(2))).to.equal(true)
  })

  it('after Redis was unreachable, no member is evicted before another steady time', async () => {
    const over = Promise.withResolvers<void>()
    const startedAt = performance.now()
    let failedAt = 0
    const { membership, lost } = setUp({
      list(count) {
        if (lost.length > 0) over.resolve()
        if (count > 1 && performance.now() - startedAt < 600) {
          failedAt = performance.now()
          throw new Error('unreachable')
        }
        return [member(OWN), member(2, { expiresInMs: 0 })]
      },
    })
    await start(membership)
    await over.promise
    expect(performance.now() - failedAt).to.be.at.least(400)
  })

  it('a process that was suspended evicts no member before another steady time', async () => {
    const over = Promise.withResolvers<void>()
    let pausedUntil = Number.POSITIVE_INFINITY
    const { membership, calls } = setUp({
      times: { steadyMs: 300, maxTickDelayMs: 100 },
      list: () => [member(OWN), member(2, { expiresInMs: performance.now() > pausedUntil ? 0 : 4_000 })],
      members: {
        async expire() {
          over.resolve()
          return true
        },
      },
    })
    await start(membership)
    await sleep(350)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250)
    pausedUntil = performance.now()
    await over.promise
    expect(performance.now() - pausedUntil).to.be.at.least(250)
    expect(calls).not.to.include('lost 1')
  })

  it('after the whole machine was suspended, Redis included, no member is evicted before another steady time', async () => {
    const over = Promise.withResolvers<void>()
    const wallClock = Date.now
    let resumedAt = Number.POSITIVE_INFINITY
    const { membership } = setUp({
      times: { steadyMs: 300, maxTickDelayMs: 100 },
      list: () => [member(OWN), member(2, { expiresInMs: performance.now() > resumedAt ? 0 : 4_000 })],
      members: {
        async expire() {
          over.resolve()
          return true
        },
      },
    })
    await start(membership)
    await sleep(350)
    try {
      Date.now = () => wallClock() + 60_000 // Only the wall clock shows that the machine was suspended.
      resumedAt = performance.now()
      await over.promise
      expect(performance.now() - resumedAt).to.be.at.least(250)
    } finally {
      Date.now = wallClock
    }
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { Lease } from '../../../shared/broker/placement/lease.ts'
import type { Member, Members, Renewal } from '../../../shared/broker/placement/members.ts'
import { type MembershipTimes, RedisMembership } from '../../../shared/broker/relay/redis-membership.ts'
import { RedisTransport } from '../../../shared/broker/relay/redis-transport.ts'
import { createLog } from '../../../shared/log.ts'
import { NO_METRICS } from '../../../shared/metrics.ts'
import { until } from '../../support/until.ts'

const OWN = 1
const TIMES: MembershipTimes = { tickMs: 50, renewMs: 90, rebuildMs: 150, steadyMs: 400, maxTickDelayMs: 500 }

const member = (epoch: number, fields: Partial<Member> = {}): Member => ({
  role: 'gateway',
  state: 'active',
  load: 0,
  pid: epoch,
  epoch,
  expiresInMs: 4_000,
  ...fields,
})

type Options = {
  /** Answers the listings, which are counted from 1. */
  list?: (count: number) => Member[] | Promise<Member[]>
  renew?: () => Renewal
  members?: Partial<Members>
  times?: Partial<MembershipTimes>
}

/** A membership of epoch 1 in front of fake members. `calls` records what it called, in order. */
function setUp({ list = () => [member(OWN)], renew = () => 'renewed', members, times }: Options = {}) {
  const calls: string[] = []
  const lost: number[] = []
  const known: number[][] = []
  const lease = new Lease()
  let [listings, epochs] = [0, 0]
  const link = {
    publish: async () => 1,
    listen: async (channel: string) => void calls.push(`listen ${channel}`),
    unlisten: async (channel: string) => void calls.push(`unlisten ${channel}`),
  }
  const transport = new RedisTransport(
    { role: 'worker', link, lease, metrics: NO_METRICS },
    { onRecord: () => {}, onUndelivered: () => {} },
  )
  const membership = new RedisMembership(
    {
      transport,
      members: {
        join: async () => ++epochs,
        renew: async () => renew(),
        leave: async (epoch) => void calls.push(`leave ${epoch}`),
        list: async () => list(++listings),
        isBootMarkerCurrent: async () => true,
        async expire(epoch) {
          calls.push(`expire ${epoch}`)
          return true
        },
        ...members,
      },
      lease,
      log: createLog({ level: 'error', write: () => {} }),
      describe: () => ({ role: 'worker', state: 'active', load: 0, pid: 1 }),
    },
    {
      onMembers(all) {
        known.push(all.map(({ epoch }) => epoch))
        calls.push(`members ${known.at(-1)}`)
      },
      onMemberLost(epoch) {
        lost.push(epoch)
        calls.push(`lost ${epoch}`)
      },
      onEvicted: () => calls.push(`evicted ${membership.epoch}`),
      onRedisEmptied: () => calls.push('emptied'),
    },
    { ...TIMES, ...times },
  )
  return { membership, transport, lease, calls, lost, known, listings: () => listings }
}

describe('membership', () => {
  const started: RedisMembership[] = []
  const start = async (membership: RedisMembership) => {
    started.push(membership)
    await membership.start()
  }
  afterEach(async () => {
    for (const membership of started.splice(0)) await membership.stop()
  })

  it('a member that is missing from the list is lost, but not before a steady time, and not if it was first called during the listing', async () => {
    const over = Promise.withResolvers<void>()
    const startedAt = performance.now()
    let lostAt = 0
    let calledAt = 0
    const { membership, transport, lost } = setUp({
      list(count) {
        if (lost.includes(2) && calledAt === 0) {
          calledAt = count
          transport.outbox('gateway', 3) // It joins and calls while the list, which it is not on, is on its way.
        }
        if (lost.length > 0 && lostAt === 0) lostAt = performance.now() - startedAt
        if (lost.includes(3)) {
          expect(count).to.be.greaterThan(calledAt + 1)
          over.resolve()
        }
        return [member(OWN)]
      },
    })
    await start(membership)
    transport.outbox('gateway', 2)
    await over.promise
    expect(lostAt).to.be.within(400, 3_000)
    expect(lost).to.deep.equal([2, 3])
  })

  it('members whose lease has run out are expired in the order of the list, then members that left are lost, then the rest is listed', async () => {
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
    const first = calls.indexOf('expire 5')
    expect(calls.slice(first, first + 6)).to.deep.equal([
      'expire 5',
      'lost 5',
      'expire 3',
      'lost 3',
      'lost 7',
      'members 1,4',
    ])
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
    let reachableAt = 0
    const { membership, lost } = setUp({
      list() {
        if (performance.now() - startedAt < 500) throw new Error('unreachable')
        reachableAt ||= performance.now()
        if (lost.length > 0) over.resolve()
        return [member(OWN), member(2, { expiresInMs: 0 })]
      },
    })
    const startedAt = performance.now() - 500
    await start(membership)
    reachableAt = 0
    await over.promise
    expect(performance.now() - reachableAt).to.be.at.least(350)
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

  it('an evicted process closes its outboxes, drops what it owned, and joins under a new epoch on a new channel', async () => {
    const over = Promise.withResolvers<void>()
    const outcomes: Renewal[] = ['evicted']
    const { membership, transport, calls, lease } = setUp({
      list: () => [member(membership.epoch)],
      renew: () => {
        const outcome = outcomes.shift()
        if (!outcome) over.resolve()
        return outcome ?? 'renewed'
      },
    })
    await start(membership)
    const before = transport.outbox('gateway', 2)
    await over.promise
    expect(calls.filter((call) => !call.startsWith('members'))).to.deep.equal([
      'listen ae:wk:1',
      'evicted 1',
      'listen ae:wk:2',
      'unlisten ae:wk:1',
    ])
    expect(membership.epoch).to.equal(2)
    expect(transport.outbox('gateway', 2)).not.to.equal(before)
    expect(lease.isHeld()).to.equal(true)
  })

  it('after Redis has lost its keys the process reports it, and its claims are not rebuilt before the rebuild time', async () => {
    const over = Promise.withResolvers<void>()
    const outcomes: Renewal[] = ['redis_emptied']
    const { membership, calls } = setUp({
      renew: () => {
        const outcome = outcomes.shift()
        if (outcome) setImmediate(over.resolve)
        return outcome ?? 'renewed'
      },
    })
    await start(membership)
    expect(await membership.isRebuilt()).to.equal(true)
    await over.promise
    const emptiedAt = performance.now()
    expect(calls).to.include('emptied')
    expect(await membership.isRebuilt()).to.equal(false)
    await until(() => membership.isRebuilt(), { what: 'the membership to be rebuilt' })
    expect(performance.now() - emptiedAt).to.be.within(100, 1_000)
    expect(calls.filter((call) => call === 'emptied')).to.have.length(1)
  })

  it('nothing is rebuilt while the boot marker in Redis is not the one this process knows', async () => {
    const { membership } = setUp({ members: { isBootMarkerCurrent: async () => false } })
    await start(membership)
    expect(await membership.isRebuilt()).to.equal(false)
  })

  it('an epoch is looked up only if it is higher than all known ones, and simultaneous lookups share one listing', async () => {
    const { membership, listings } = setUp({ list: () => [member(OWN), member(5)], times: { tickMs: 60_000 } })
    await start(membership)
    expect(listings()).to.equal(1)
    await Promise.all([membership.discover(3), membership.discover(5)])
    expect(listings()).to.equal(1)
    await Promise.all([membership.discover(6), membership.discover(7)])
    expect(listings()).to.equal(2)
  })

  it('stop leaves the cluster and leaves no timer', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const { membership, calls } = setUp()
    await start(membership)
    const running = timers()
    await membership.stop()
    expect(timers()).to.equal(running - 1)
    expect(calls).to.include('leave 1')
  })
})

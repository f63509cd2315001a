import { expect } from 'chai'
import { Journal } from '../../../shared/cluster/journal/journal.ts'
import { Lease } from '../../../shared/cluster/members/lease.ts'
import type { Renewal } from '../../../shared/cluster/members/members.ts'
import { newBudget } from '../../support/journal-budget.ts'
import { until } from '../../support/until.ts'
import { member, OWN, setUp, useStarts } from './membership-setup.ts'

/** At least 50 ms each: together longer than the rebuild time, which is longer than a busy machine lets a tick wait. */
const AWAY_RENEWALS = 18
const REBUILD_MS = 600

describe('membership: of this process', () => {
  const start = useStarts()

  it('an evicted process joins under a new epoch on a new channel, closes its outboxes, and then drops what it owned', async () => {
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
      'subscribe wk:1',
      'subscribe wk:2',
      'unsubscribe wk:1',
      'evicted 2',
    ])
    expect(membership.epoch).to.equal(2)
    expect(transport.outbox('gateway', 2)).not.to.equal(before)
    expect(lease.isHeld()).to.equal(true)
  })

  it('a start that fails after the process has joined is repeated under the same epoch', async () => {
    const { membership, calls, listings } = setUp({
      list(count) {
        if (count === 1) throw new Error('late')
        return [member(OWN)]
      },
    })
    expect(await membership.start().catch(String)).to.equal('Error: late')
    await start(membership)
    expect([membership.epoch, listings()]).to.deep.equal([OWN, 2])
    expect(calls.filter((call) => call.startsWith('subscribe'))).to.deep.equal(['subscribe wk:1'])
  })

  it('a process without a subscription subscribes again and does not renew its lease', async () => {
    const over = Promise.withResolvers<void>()
    const { membership, calls, lease } = setUp({
      renew: () => {
        if (calls.includes('resubscribe')) over.resolve()
        return 'unheard'
      },
    })
    await start(membership)
    const renewed: unknown[] = []
    lease.renewed = (at) => void renewed.push(at)
    await over.promise
    expect(renewed).to.deep.equal([])
  })

  it('P2: a lease counts from the request to join or renew, so an answer that comes too late gives none', async () => {
    const lease = new Lease(100)
    let isSuspended = true
    /** Stops the whole process for longer than the lease, after Redis was asked. */
    const suspend = () => isSuspended && Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150)
    const join = async () => {
      suspend()
      return OWN
    }
    const renew = () => {
      suspend()
      return 'renewed' as const
    }
    const { membership } = setUp({ lease, members: { join }, renew, times: { tickMs: 60_000 } })
    await start(membership)
    expect(lease.isHeld()).to.equal(false)
    await membership.announce()
    expect(lease.isHeld()).to.equal(false)
    isSuspended = false
    await membership.announce()
    expect(lease.isHeld()).to.equal(true)
  })

  it('a connection on which two messages in a row were not heard is replaced; every second renewal sends one', async () => {
    const over = Promise.withResolvers<void>()
    let renewals = 0
    const { membership, calls } = setUp({
      renew: () => {
        renewals++
        if (calls.includes('reconnect')) over.resolve()
        return 'renewed'
      },
    })
    await start(membership)
    await over.promise
    expect(renewals).to.equal(5)
  })

  it('a renewal sends the frames that were held back while the lease was not held', async () => {
    const { membership, transport, calls, lease } = setUp({ times: { tickMs: 60_000 } })
    await start(membership)
    const { isHeld } = lease
    lease.isHeld = () => false
    const journal = new Journal(newBudget(1e6))
    transport.outbox('gateway', 2).attach(1, journal.follow(0))
    journal.append({ type: 'text_delta', text: 'hi' })
    await new Promise(setImmediate)
    expect(calls).not.to.include('publish gw:2')
    lease.isHeld = isHeld
    await membership.announce()
    expect(calls).to.include('publish gw:2')
  })

  it('after Redis has lost its keys the process reports it, and its claims are not rebuilt before the rebuild time', async () => {
    const over = Promise.withResolvers<void>()
    const outcomes: Renewal[] = ['keys_lost']
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
    expect(performance.now() - emptiedAt).to.be.at.least(100)
    expect(calls.filter((call) => call === 'emptied')).to.have.length(1)
  })

  it('while a worker has not registered again after Redis lost its keys, a claim may be missing; for a gateway it is not waited', async () => {
    const worker = member(5, { role: 'worker' })
    const lists = [[member(OWN), member(4), worker], [member(OWN)], [member(OWN), worker]]
    const outcomes: Renewal[] = ['keys_lost']
    const { membership } = setUp({
      list: () => lists.shift() ?? [],
      renew: () => outcomes.shift() ?? 'renewed',
      times: { tickMs: 60_000, rebuildMs: -1 },
    })
    await start(membership)
    await membership.announce()
    for (const isRebuilt of [true, false, true]) {
      expect(await membership.isRebuilt()).to.equal(isRebuilt)
      await membership.refreshMembers()
    }
  })

  it('the time in which Redis is away again is no part of the rebuild time', async () => {
    const back = Promise.withResolvers<boolean>()
    let renewals = 0
    const { membership } = setUp({
      times: { rebuildMs: REBUILD_MS },
      renew: () => {
        renewals++
        if (renewals === 1) return 'keys_lost'
        if (renewals < AWAY_RENEWALS) throw new Error('Redis is away')
        membership.isRebuilt().then(back.resolve, back.reject)
        return 'renewed'
      },
    })
    await start(membership)
    expect(await back.promise).to.equal(false)
    await until(() => membership.isRebuilt(), { what: 'the membership to be rebuilt' })
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

import { expect } from 'chai'
import { Lease } from '../../../shared/broker/placement/lease.ts'

const NEVER = new AbortController().signal

describe('lease', () => {
  it('T_lease: nothing is held before the first renewal, and nothing for longer than it lasts', () => {
    const lease = new Lease(50)
    expect(lease.isHeld()).to.equal(false)
    lease.renewed(performance.now())
    expect(lease.isHeld()).to.equal(true)
    lease.renewed(performance.now() - 51)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: a process that was stopped refuses with its first instruction, before any timer has run', () => {
    const lease = new Lease(20)
    lease.renewed(performance.now())
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: an answer that was read late counts from when it was asked for', () => {
    const lease = new Lease(20)
    const askedAt = performance.now()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    lease.renewed(askedAt)
    expect(lease.isHeld()).to.equal(false)
  })

  it('design §4.6: who waits goes on when the lease is renewed', async () => {
    const lease = new Lease()
    const waiting = lease.whenHeld(NEVER)
    lease.renewed(performance.now())
    await waiting
    expect(lease.isHeld()).to.equal(true)
  })

  it('design §4.6: who waits is let go when its run is ended', async () => {
    const lease = new Lease()
    const run = new AbortController()
    const waiting = lease.whenHeld(run.signal)
    run.abort()
    await waiting
    expect(lease.isHeld()).to.equal(false)
  })
})

import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import { Lease } from '../../../shared/broker/placement/lease.ts'

const NEVER = new AbortController().signal

describe('lease', () => {
  it('a lease is not held before the first renewal, nor after its duration has passed', () => {
    const lease = new Lease(50)
    expect(lease.isHeld()).to.equal(false)
    lease.renewed(performance.now())
    expect(lease.isHeld()).to.equal(true)
    lease.renewed(performance.now() - 51)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: a process that was suspended finds the lease not held with its first instruction, before any timer has run', () => {
    const lease = new Lease(20)
    lease.renewed(performance.now())
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: a renewal counts from its request, however late its answer is read', () => {
    const lease = new Lease(20)
    const requestedAt = performance.now()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    lease.renewed(requestedAt)
    expect(lease.isHeld()).to.equal(false)
  })

  it('a waiting caller continues when the lease is renewed, and leaves no listener on its signal', async () => {
    const lease = new Lease()
    const { signal } = new AbortController()
    const waiting = lease.whenHeld(signal)
    lease.renewed(performance.now())
    await waiting
    expect(lease.isHeld()).to.equal(true)
    expect(getEventListeners(signal, 'abort')).to.deep.equal([])
  })

  it('a waiting caller continues when its run is aborted, and leaves no listener on its signal', async () => {
    const lease = new Lease()
    const run = new AbortController()
    const waiting = lease.whenHeld(run.signal)
    run.abort()
    await waiting
    expect(lease.isHeld()).to.equal(false)
    expect(getEventListeners(run.signal, 'abort')).to.deep.equal([])
  })

  it('a caller does not wait when the lease is held or its run is already aborted', async () => {
    await new Lease().whenHeld(AbortSignal.abort())
    const lease = new Lease()
    lease.renewed(performance.now())
    await lease.whenHeld(NEVER)
  })

  it('a renewal that is already over when its answer is read lets no caller continue', async () => {
    const lease = new Lease(50)
    const waiting = lease.whenHeld(NEVER).then(() => 'held')
    lease.renewed(performance.now() - 51)
    expect(await Promise.race([waiting, new Promise((resolve) => setImmediate(resolve, 'waiting'))])).to.equal(
      'waiting',
    )
    lease.renewed(performance.now())
    expect(await waiting).to.equal('held')
  })
})

import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import { Lease } from '../../../shared/cluster/members/lease.ts'
import { now } from '../../../shared/cluster/members/moment.ts'

const NEVER = new AbortController().signal

const ago = (ms: number) => ({ monotonic: performance.now() - ms, wall: Date.now() - ms })

/** A lease of three seconds by clocks that a test sets. Both begin at 0. */
function withClocks() {
  const clocks = { monotonic: 0, wall: 0 }
  const lease = new Lease(3_000, () => ({ ...clocks }))
  const set = (monotonic: number, wall: number) => ({ ...Object.assign(clocks, { monotonic, wall }) })
  return { lease, set }
}

describe('lease', () => {
  it('a lease is not held before the first renewal, nor after its duration has passed', () => {
    const lease = new Lease(50)
    expect(lease.isHeld()).to.equal(false)
    lease.renewed(now())
    expect(lease.isHeld()).to.equal(true)
    lease.renewed(ago(51))
    expect(lease.isHeld()).to.equal(false)
  })

  it('says until when it is held, by the monotonic clock; a lease that is not held has ended long ago', () => {
    const { lease, set } = withClocks()
    expect(lease.heldUntil()).to.equal(-Infinity)
    lease.renewed(set(1_000, 1_000))
    set(3_999, 3_999)
    expect(lease.heldUntil()).to.equal(4_000)
    set(4_000, 4_000)
    expect(lease.heldUntil()).to.equal(-Infinity)
  })

  it('P2: a process that was suspended finds the lease not held with its first instruction, before any timer has run', () => {
    const lease = new Lease(20)
    lease.renewed(now())
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: a renewal counts from its request, however late its answer is read', () => {
    const lease = new Lease(20)
    const requestedAt = now()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30)
    lease.renewed(requestedAt)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: a lease is not held after the machine was suspended, while the monotonic clock stood still', () => {
    const { lease, set } = withClocks()
    lease.renewed(set(0, 0))
    set(1_000, 1_000)
    expect(lease.isHeld()).to.equal(true)
    set(1_000, 9_000)
    expect(lease.isHeld()).to.equal(false)
  })

  it('P2: a suspension of the machine counts even when the wall clock is set back meanwhile, or is shorter than the tolerance', () => {
    const { lease, set } = withClocks()
    lease.renewed(set(0, 0))
    set(1_000, -2_000)
    expect(lease.isHeld()).to.equal(false)
    set(2_600, 3_000)
    expect(lease.isHeld()).to.equal(false)
    set(2_600, 2_999)
    expect(lease.isHeld()).to.equal(true)
  })

  it('P2: a process that was paused between reading the two clocks gets no lease', () => {
    const { lease, set } = withClocks()
    lease.renewed({ monotonic: 0, wall: 6_000 })
    set(6_000, 6_000)
    expect(lease.isHeld()).to.equal(false)
  })

  it('a wall clock that was set closes the fence until the next renewal', () => {
    const { lease, set } = withClocks()
    lease.renewed(set(0, 0))
    set(100, 3_600_100)
    expect(lease.isHeld()).to.equal(false)
    lease.renewed(set(200, 3_600_200))
    expect(lease.isHeld()).to.equal(true)
  })

  it('a waiting caller continues when the lease is renewed, and leaves no listener on its signal', async () => {
    const lease = new Lease()
    const { signal } = new AbortController()
    const waiting = lease.whenHeld(signal)
    lease.renewed(now())
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
    lease.renewed(now())
    await lease.whenHeld(NEVER)
  })

  it('a renewal that is already over when its answer is read lets no caller continue', async () => {
    const lease = new Lease(50)
    const waiting = lease.whenHeld(NEVER).then(() => 'held')
    lease.renewed(ago(51))
    expect(await Promise.race([waiting, new Promise((resolve) => setImmediate(resolve, 'waiting'))])).to.equal(
      'waiting',
    )
    lease.renewed(now())
    expect(await waiting).to.equal('held')
  })
})

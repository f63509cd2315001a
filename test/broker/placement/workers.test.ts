import { expect } from 'chai'
import type { Member } from '../../../shared/broker/placement/members.ts'
import { Workers } from '../../../shared/broker/placement/workers.ts'

const worker = (epoch: number, fields: Partial<Member> = {}): Member => ({
  role: 'worker',
  state: 'active',
  load: 0,
  pid: epoch,
  epoch,
  expiresInMs: 4_000,
  ...fields,
})

function setUp() {
  const clock = { now: 1_000_000 }
  const workers = new Workers(() => clock.now)
  const takers = () => workers.eligible.map(({ epoch }) => epoch)
  return { clock, workers, takers }
}

describe('workers', () => {
  it('design §4.8: a draining worker takes nothing new and is still asked for what it has', () => {
    const { workers, takers } = setUp()
    workers.update([worker(1), worker(2, { state: 'draining' }), worker(3, { role: 'gateway' })])
    expect(takers()).to.deep.equal([1])
    expect([...workers.alive]).to.deep.equal([1, 2])
    expect(workers.ownerOf('any')).to.equal(1)
  })

  it('design §4.7: a key belongs to one worker; without it, to another; and without any, to nobody', () => {
    const { workers } = setUp()
    expect(workers.ownerOf('key')).to.equal(undefined)
    workers.update([worker(1), worker(2)])
    const owner = workers.ownerOf('key')
    expect([1, 2]).to.include(owner)
    expect(workers.ownerOf('key', owner)).to.equal(owner === 1 ? 2 : 1)
    expect(workers.ownerOf('key')).to.equal(owner)
  })

  it('reliability WK crash loop: after three deaths within a minute a newcomer gets nothing, until it has lived for one', () => {
    const { clock, workers, takers } = setUp()
    workers.update([worker(1), worker(2)])
    for (const epoch of [3, 4, 5]) {
      workers.update([worker(1), worker(2), worker(epoch)])
      expect(takers()).to.deep.equal([1, 2, epoch])
      clock.now += 5_000
      workers.update([worker(1), worker(2)])
    }
    workers.update([worker(1), worker(2), worker(6)])
    expect(takers()).to.deep.equal([1, 2])
    expect(workers.isAlive(6)).to.equal(true)
    clock.now += 60_000
    workers.update([worker(1), worker(2), worker(6)])
    expect(takers()).to.deep.equal([1, 2, 6])
  })

  it('reliability WK crash loop: who leaves by draining has not died, and where all are new the new ones are taken', () => {
    const { workers, takers } = setUp()
    workers.update([worker(1)])
    for (const epoch of [2, 3, 4]) {
      workers.update([worker(1), worker(epoch)])
      workers.update([worker(1), worker(epoch, { state: 'draining' })])
      workers.update([worker(1)])
    }
    workers.update([worker(1), worker(5)])
    expect(takers()).to.deep.equal([1, 5])
    for (const epoch of [6, 7, 8]) {
      workers.update([worker(epoch)])
      workers.update([])
    }
    workers.update([worker(9)])
    expect(takers()).to.deep.equal([9])
  })
})

import { expect } from 'chai'
import { lessLoadedOfTwo, Workers } from '../../../shared/cluster/members/workers.ts'
import { worker } from './member.ts'

function setUp() {
  const clock = { now: 1_000_000 }
  const workers = new Workers(() => clock.now)
  const eligible = () => workers.eligible.map(({ epoch }) => epoch)
  /** Lists the workers with these epochs. */
  const list = (...epochs: number[]) => workers.update(epochs.map((epoch) => worker(epoch)))
  return { clock, workers, eligible, list }
}

describe('workers', () => {
  it('a draining worker gets no new work and still answers for what it has', () => {
    const { workers, eligible } = setUp()
    workers.update([worker(1), worker(2, { state: 'draining' }), worker(3, { role: 'gateway' })])
    expect(eligible()).to.deep.equal([1])
    expect([...workers.alive]).to.deep.equal([1, 2])
    expect(workers.ownerOf('any')).to.equal(1)
  })

  it('a key belongs to one worker, without that one to another, and without any worker to none', () => {
    const { workers, list } = setUp()
    expect(workers.ownerOf('key')).to.equal(undefined)
    list(1, 2)
    const owner = workers.ownerOf('key')
    expect([1, 2]).to.include(owner)
    expect(workers.ownerOf('key', owner)).to.equal(owner === 1 ? 2 : 1)
    expect(workers.ownerOf('key')).to.equal(owner)
  })

  it('a worker that is no longer listed owns no key, and gets its keys back when it is listed again', () => {
    const { workers, list } = setUp()
    list(1, 2)
    const keys = Array.from({ length: 50 }, (_, i) => `key ${i}`)
    const before = keys.map((key) => workers.ownerOf(key))
    list(2)
    expect(new Set(keys.map((key) => workers.ownerOf(key)))).to.deep.equal(new Set([2]))
    list(1, 2)
    expect(keys.map((key) => workers.ownerOf(key))).to.deep.equal(before)
  })

  it('the ring of 1,000 workers is built in short pieces, between which the process does other things', async () => {
    const { workers, list } = setUp()
    list(...Array.from({ length: 1_000 }, (_, i) => i + 1))
    let turns = 0
    const count = () => {
      turns++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    await Promise.all([workers.prepare(), workers.prepare()])
    clearImmediate(counting)
    expect(turns).to.be.within(120, 135)
    const owners = new Set(Array.from({ length: 20_000 }, (_, i) => workers.ownerOf(`key ${i}`)))
    expect(owners.size).to.be.above(990)
  })

  it('while the ring is built a key belongs to a worker that takes new work, and never to one that has left', async () => {
    const { workers, list } = setUp()
    const [some, others] = [0, 1_000].map((from) => Array.from({ length: 200 }, (_, i) => from + i + 1))
    list(...(some ?? []))
    await workers.prepare()
    list(...(others ?? []))
    const prepared = workers.prepare()
    for (let i = 0; i < 100; i++) expect(workers.ownerOf(`key ${i}`)).to.be.above(1_000)
    await prepared
    const anew = setUp()
    anew.list(...(others ?? []))
    await anew.workers.prepare()
    for (let i = 0; i < 100; i++) expect(workers.ownerOf(`key ${i}`)).to.equal(anew.workers.ownerOf(`key ${i}`))
  })

  it('a worker whose lease has run out gets no new work, unless none has renewed', () => {
    const { workers, eligible } = setUp()
    workers.update([worker(1, { expiresInMs: 0 }), worker(2, { expiresInMs: 1 }), worker(3, { expiresInMs: -1 })])
    expect(eligible()).to.deep.equal([2])
    workers.update([worker(1, { expiresInMs: 0 }), worker(3, { expiresInMs: -1 })])
    expect(eligible()).to.deep.equal([1, 3])
    workers.update([worker(1, { expiresInMs: 0 }), worker(3, { expiresInMs: -1, state: 'draining' })])
    expect(eligible()).to.deep.equal([1])
  })

  it('after three crashes within a minute a new worker gets no work until it is a minute old', () => {
    const { clock, workers, eligible, list } = setUp()
    list(1, 2)
    for (const epoch of [3, 4, 5]) {
      list(1, 2, epoch)
      expect(eligible()).to.deep.equal([1, 2, epoch])
      clock.now += 5_000
      list(1, 2)
    }
    list(1, 2, 6)
    expect(eligible()).to.deep.equal([1, 2])
    expect(workers.isAlive(6)).to.equal(true)
    clock.now += 60_000
    list(1, 2, 6)
    expect(eligible()).to.deep.equal([1, 2, 6])
  })

  it('in a crash loop a worker is eligible at an age of exactly one minute, and not before', () => {
    const { clock, eligible, list } = setUp()
    list(1, 2, 3, 4)
    list(1, 2, 3, 4, 10)
    clock.now += 59_999
    list(1, 2, 3, 4, 10, 11, 12, 13)
    list(1, 2, 3, 4, 10) // Workers 11, 12 and 13 have crashed.
    expect(eligible()).to.deep.equal([1, 2, 3, 4])
    clock.now += 1
    list(1, 2, 3, 4, 10)
    expect(eligible()).to.deep.equal([1, 2, 3, 4, 10])
  })

  it('a crash counts for less than a minute, and two crashes are no loop', () => {
    const { clock, eligible, list } = setUp()
    list(1, 2, 3, 4, 5)
    list(1, 2) // Workers 3, 4 and 5 have crashed.
    clock.now += 59_999
    list(1, 2, 6)
    expect(eligible()).to.deep.equal([1, 2])
    clock.now += 1
    list(1, 2, 6)
    expect(eligible()).to.deep.equal([1, 2, 6])
    list(1, 2, 6, 7, 8)
    list(1, 2, 6)
    list(1, 2, 6, 9)
    expect(eligible()).to.deep.equal([1, 2, 6, 9])
  })

  it('a worker that vanishes after draining has not crashed', () => {
    const { workers, eligible, list } = setUp()
    list(1)
    for (const epoch of [2, 3, 4]) {
      list(1, epoch)
      workers.update([worker(1), worker(epoch, { state: 'draining' })])
      list(1)
    }
    list(1, 5)
    expect(eligible()).to.deep.equal([1, 5])
  })

  it('in a crash loop young workers are eligible when the old ones are fewer than half', () => {
    const { eligible, list } = setUp()
    list(1, 2, 3, 4, 5)
    list(1, 2) // Workers 3, 4 and 5 have crashed.
    list(1, 2, 6, 7)
    expect(eligible()).to.deep.equal([1, 2])
    list(1, 2, 6, 7, 8)
    expect(eligible()).to.deep.equal([1, 2, 6, 7, 8])
  })

  it('in a crash loop in which only young workers are left, they are eligible', () => {
    const { eligible, list } = setUp()
    list()
    for (const epoch of [6, 7, 8]) {
      list(epoch)
      list()
    }
    list(9)
    expect(eligible()).to.deep.equal([9])
  })
})

describe('less loaded of two', () => {
  const drawing =
    (...draws: number[]) =>
    () =>
      draws.shift() ?? 0

  it('takes the less loaded of the two that are drawn, in either order, and the first of two equals', () => {
    const [busy, idle, alsoIdle] = [{ load: 5 }, { load: 1 }, { load: 1 }]
    expect(lessLoadedOfTwo([busy, idle], drawing(0, 0.9))).to.equal(idle)
    expect(lessLoadedOfTwo([idle, busy], drawing(0, 0.9))).to.equal(idle)
    expect(lessLoadedOfTwo([busy, idle, alsoIdle], drawing(0.4, 0.9))).to.equal(idle)
    expect(lessLoadedOfTwo([busy, idle, alsoIdle], drawing(0.9, 0.4))).to.equal(alsoIdle)
  })

  it('of one worker it takes that one, of none none', () => {
    const only = { load: 3 }
    expect(lessLoadedOfTwo([only], drawing(0.99, 0))).to.equal(only)
    expect(lessLoadedOfTwo([], Math.random)).to.equal(undefined)
  })
})

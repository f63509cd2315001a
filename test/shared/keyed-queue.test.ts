import { expect } from 'chai'
import { createKeyedQueue } from '../../shared/keyed-queue.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the queue by key', () => {
  it('runs the tasks of one key one after another, and those of another key at the same time', async () => {
    const queue = createKeyedQueue()
    const events: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = queue('a', async () => {
      events.push('a1 begins')
      await gate.promise
      events.push('a1 ends')
      return 1
    })
    const second = queue('a', async () => void events.push('a2'))
    const other = queue('b', async () => 'of b')
    expect(await other).to.equal('of b')
    await settled()
    expect(events).to.deep.equal(['a1 begins'])
    gate.resolve()
    expect(await first).to.equal(1)
    await second
    expect(events).to.deep.equal(['a1 begins', 'a1 ends', 'a2'])
  })

  it('runs the next task of a key after one has failed, whose own caller gets the failure', async () => {
    const queue = createKeyedQueue()
    const failing = queue('a', () => Promise.reject(new Error('no')))
    const next = queue('a', async () => 'ran')
    expect(await failing.catch(String)).to.equal('Error: no')
    expect(await next).to.equal('ran')
  })

  it('keeps nothing of a key whose tasks have ended', async () => {
    const sizes: number[] = []
    const { set } = Map.prototype
    const maps = new Set<Map<unknown, unknown>>()
    Map.prototype.set = function (this: Map<unknown, unknown>, key: unknown, value: unknown) {
      if (key === 'the only key of this test') maps.add(this)
      return set.call(this, key, value)
    }
    try {
      const queue = createKeyedQueue()
      const tasks = Array.from({ length: 3 }, () => queue('the only key of this test', async () => {}))
      await Promise.all([
        ...tasks,
        queue('the only key of this test', () => Promise.reject(new Error())).catch(() => {}),
      ])
      await settled()
      for (const { size } of maps) sizes.push(size)
    } finally {
      Map.prototype.set = set
    }
    expect(sizes).to.deep.equal([0])
  })
})

import { expect } from 'chai'
import { createKeyedQueue } from '../../../shared/kernel/async/keyed-queue.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the queue by key', () => {
  it('runs the tasks of one key one after another, and those of another key at the same time', async () => {
    const queue = createKeyedQueue()
    const events: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = queue.run('a', async () => {
      events.push('a1 begins')
      await gate.promise
      events.push('a1 ends')
      return 1
    })
    const second = queue.run('a', async () => void events.push('a2'))
    const other = queue.run('b', async () => 'of b')
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
    const failing = queue.run('a', () => Promise.reject(new Error('no')))
    const next = queue.run('a', async () => 'ran')
    expect(await failing.catch(String)).to.equal('Error: no')
    expect(await next).to.equal('ran')
  })

  it('keeps nothing of a key whose tasks have ended, and everything of one whose task is running', async () => {
    const queue = createKeyedQueue()
    const gate = Promise.withResolvers<void>()
    const first = queue.run('a', async () => {})
    const second = queue.run('a', () => gate.promise)
    const failing = queue.run('b', () => Promise.reject(new Error('no')))
    await first
    await failing.catch(() => {})
    await settled()
    expect(queue.size).to.equal(1)
    gate.resolve()
    await second
    await settled()
    expect(queue.size).to.equal(0)
  })
})

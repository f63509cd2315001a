import { AsyncLocalStorage } from 'node:async_hooks'
import { expect } from 'chai'
import { ExpiryQueue } from '../../../shared/work/runs/expiry-queue.ts'
import { until } from '../../support/until.ts'

/** A queue, what has expired, and a promise for the moment when `count` items have. */
function setUp(ms: number, count: number) {
  const expired: string[] = []
  const all = Promise.withResolvers<void>()
  const queue = new ExpiryQueue<string>(ms, (item) => {
    expired.push(item)
    if (expired.length === count) all.resolve()
  })
  return { queue, expired, all: all.promise }
}

describe('a queue of items that expire', () => {
  it('expires items in the order in which their time was started, not before it is over', async () => {
    const { queue, expired, all } = setUp(20, 3)
    const start = performance.now()
    for (const item of ['a', 'b', 'c']) queue.add(item)
    queue.add('a')
    expect(expired).to.deep.equal([])
    await all
    expect(expired).to.deep.equal(['b', 'c', 'a'])
    expect(performance.now() - start).to.be.at.least(20)
  })

  it('does not expire an item that was deleted, and expires one that was added after the queue was empty', async () => {
    const { queue, expired, all } = setUp(2, 2)
    queue.add('a')
    queue.add('b')
    queue.delete('a')
    await until(() => expired.length > 0, { what: 'the item that was not deleted to expire' })
    queue.add('c')
    await all
    expect(expired).to.deep.equal(['b', 'c'])
  })

  it('expires items outside of the request that added them', async () => {
    const request = new AsyncLocalStorage<string>()
    const seen = Promise.withResolvers<string | undefined>()
    const queue = new ExpiryQueue<string>(1, () => seen.resolve(request.getStore()))
    request.run('req_1', () => queue.add('a'))
    expect(await seen.promise).to.equal(undefined)
  })
})

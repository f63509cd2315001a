import { expect } from 'chai'
import { createCache } from '../../shared/kernel/cache.ts'

describe('a cache', () => {
  it('forgets what was not used for the longest time, and nothing before it is full', () => {
    const cache = createCache<string, number>(2)
    cache.set('a', 1).set('b', 2)
    expect(cache.get('a')).to.equal(1)
    cache.set('c', 3)
    expect([...cache.keys()].toSorted()).to.deep.equal(['a', 'c'])
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { LineCache } from '../../../shared/agent/customers/cache.ts'

function cacheOf(maxLines: number, idleMs = -1) {
  const opened: string[] = []
  const cache = new LineCache({ maxLines, idleMs }, (key: string) => {
    opened.push(key)
    return { key }
  })
  const use = (key: string) => cache.hold(key, key).release()
  return { cache, opened, use }
}

describe('customer engine cache', () => {
  it('api.md Limits: above its limit the least recently used line is evicted', () => {
    const { cache, opened, use } = cacheOf(2)
    for (const key of ['a', 'b', 'a', 'c']) use(key)
    expect(cache.size).to.equal(2)
    for (const key of ['a', 'c']) use(key)
    expect(opened).to.deep.equal(['a', 'b', 'c'])
    use('b')
    expect(opened).to.deep.equal(['a', 'b', 'c', 'b'])
  })

  it('api.md Limits: a line that a run uses is never evicted, even above the limit', () => {
    const { cache, opened, use } = cacheOf(1)
    const first = cache.hold('a', 'a')
    const second = cache.hold('b', 'b')
    use('c')
    expect(cache.hold('a', 'a').line).to.equal(first.line)
    expect(opened).to.deep.equal(['a', 'b', 'c'])
    second.release()
    expect(cache.size).to.equal(1)
  })

  it('a second release has no effect', () => {
    const { cache, opened, use } = cacheOf(1)
    const first = cache.hold('a', 'a')
    cache.hold('a', 'a')
    first.release()
    first.release()
    use('b')
    use('a')
    expect(opened).to.deep.equal(['a', 'b'])
  })

  it('CUSTOMER_IDLE_SECS: an unused line is removed after the time; a line in use is not, and with a negative time none is', async () => {
    const { cache, use } = cacheOf(8, 0)
    use('a')
    const held = cache.hold('b', 'b')
    await timersOf(0)
    expect(cache.size).to.equal(1)
    held.release()
    const forever = cacheOf(8, -1)
    forever.use('a')
    await timersOf(0)
    expect(forever.cache.size).to.equal(1)
  })

  it('a line that is used again is not removed by the timer of its earlier use', async () => {
    const { cache, use } = cacheOf(8, 0)
    use('a')
    cache.hold('a', 'a')
    await timersOf(0)
    expect(cache.size).to.equal(1)
  })

  it('a line with two users is in use until both have released it', async () => {
    const { cache } = cacheOf(8, 0)
    const [first, second] = [cache.hold('a', 'a'), cache.hold('a', 'a')]
    first.release()
    await timersOf(0)
    expect(cache.size).to.equal(1)
    second.release()
    await timersOf(0)
    expect(cache.size).to.equal(0)
  })

  it('a new line above the limit evicts an unused one at once', () => {
    const { cache, use } = cacheOf(1)
    use('a')
    cache.hold('b', 'b')
    expect(cache.size).to.equal(1)
    expect(cache.hold('a', 'a').line).to.deep.equal({ key: 'a' })
    expect(cache.size).to.equal(2)
  })

  it('the timer of an evicted line does not remove a later line of the same customer', async () => {
    const { cache, use } = cacheOf(1, 0)
    use('a')
    use('b')
    cache.hold('a', 'a')
    await timersOf(0)
    expect(cache.size).to.equal(1)
  })
})

/** Resolves after all timers of this length that were started before: Node runs them in their order. */
const timersOf = (ms: number): Promise<void> => sleep(ms)

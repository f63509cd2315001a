import { expect } from 'chai'
import { LineCache } from '../../shared/customers/cache.ts'

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
  it('api.md Limits: over its bound the line that was used longest ago goes', () => {
    const { cache, opened, use } = cacheOf(2)
    for (const key of ['a', 'b', 'a', 'c']) use(key)
    expect(cache.size).to.equal(2)
    for (const key of ['a', 'c']) use(key)
    expect(opened).to.deep.equal(['a', 'b', 'c'])
    use('b')
    expect(opened).to.deep.equal(['a', 'b', 'c', 'b'])
  })

  it('issue 5.4: a line that a run holds is never evicted, however many there are', () => {
    const { cache, opened, use } = cacheOf(1)
    const first = cache.hold('a', 'a')
    const second = cache.hold('b', 'b')
    use('c')
    expect(cache.hold('a', 'a').line).to.equal(first.line)
    expect(opened).to.deep.equal(['a', 'b', 'c'])
    second.release()
    expect(cache.size).to.equal(1)
  })

  it('releasing twice counts once', () => {
    const { cache, opened, use } = cacheOf(1)
    const first = cache.hold('a', 'a')
    cache.hold('a', 'a')
    first.release()
    first.release()
    use('b')
    use('a')
    expect(opened).to.deep.equal(['a', 'b'])
  })

  it('CUSTOMER_IDLE_SECS: an unused line is let go after the time, a held one and a negative time never', async () => {
    const { cache, use } = cacheOf(8, 0)
    use('a')
    const held = cache.hold('b', 'b')
    await new Promise((resolve) => setTimeout(resolve, 1)) // Node runs timers of one length in their order.
    expect(cache.size).to.equal(1)
    held.release()
    const forever = cacheOf(8, -1)
    forever.use('a')
    await new Promise((resolve) => setTimeout(resolve, 1))
    expect(forever.cache.size).to.equal(1)
  })
})

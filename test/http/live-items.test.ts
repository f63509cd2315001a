import { getHeapSpaceStatistics } from 'node:v8'
import { expect } from 'chai'
import { collectGarbage } from '../../scripts/bench/garbage.ts'
import { LiveItems, type Place } from '../../services/http/live-items.ts'

describe('LiveItems', () => {
  it('lists the items that were added and not removed, in the order in which they were added', () => {
    const live = new LiveItems<{ name: string }>()
    const [first, second, third] = [{ name: 'first' }, { name: 'second' }, { name: 'third' }]
    const place = live.add(first)
    live.add(second)
    place.leave()
    place.leave()
    live.add(third)
    expect([...live]).to.deep.equal([second, third])
    expect(live.size).to.equal(2)
  })

  it('leaves out an item that is removed while the items are listed', () => {
    const live = new LiveItems<{ name: string }>()
    const listed: string[] = []
    live.add({ name: 'first' })
    const place = live.add({ name: 'second' })
    live.add({ name: 'third' })
    for (const { name } of live) {
      listed.push(name)
      place.leave()
    }
    expect(listed).to.deep.equal(['first', 'third'])
  })

  it('gives the memory of removed items back without a full garbage collection', () => {
    const live = new LiveItems<object>()
    const places: Place[] = []
    const addAndRemove = (count: number) => {
      for (let at = 0; at < count; at++) {
        places[at % 64]?.leave()
        places[at % 64] = live.add({ data: Array.from({ length: 100 }, () => at) })
        if (at % 100 === 99) collectGarbage({ type: 'minor' })
      }
    }
    addAndRemove(1_000)
    collectGarbage()
    const before = oldBytes()
    addAndRemove(10_000)
    expect((oldBytes() - before) / 10_000).to.be.below(200) // An item has more than 800 bytes.
  })
})

const oldBytes = (): number =>
  getHeapSpaceStatistics().find((space) => space.space_name === 'old_space')?.space_used_size ?? Number.NaN

import { mock } from 'node:test'
import { expect } from 'chai'
import { createKeepalive, type KeepaliveTarget } from '../../../services/gateway/streams/keepalive.ts'

const INTERVAL_MS = 15_000
/** How late a comment may be. */
const LATE_MS = 60

describe('the keepalive of streams', () => {
  let clockMs: number
  const now = () => clockMs
  /** A stream that notes the times of its comments, each of which takes a while. */
  class Stream implements KeepaliveTarget {
    readonly beats: number[] = []
    readonly #workMs: number

    constructor(workMs = 0) {
      this.#workMs = workMs
    }

    sendKeepalive(): void {
      this.beats.push(clockMs)
      clockMs += this.#workMs
    }
  }

  beforeEach(() => {
    clockMs = 0
    mock.timers.enable({ apis: ['setTimeout'] })
  })
  afterEach(() => mock.timers.reset())

  function pass(ms: number): void {
    for (let left = ms; left > 0; left--) {
      clockMs++
      mock.timers.tick(1)
    }
  }

  const distances = ({ beats }: Stream) => beats.slice(1).map((beat, i) => beat - (beats[i] ?? 0))

  it('api.md Limits: each stream gets one comment per interval, the first after a whole interval, and those that open at different times get theirs at different times', () => {
    const keepalive = createKeepalive(INTERVAL_MS, now)
    const [first, second] = [new Stream(), new Stream()]
    keepalive.add(first)
    pass(4_000)
    keepalive.add(second)
    pass(45_000)
    expect(first.beats).to.deep.equal([15_000, 30_000, 45_000])
    expect(second.beats).to.deep.equal([19_000, 34_000, 49_000])
  })

  it('the clock decides: however many comments and other work come between, the interval is not stretched and never cut short', () => {
    const keepalive = createKeepalive(INTERVAL_MS, now)
    const streams = Array.from({ length: 150 }, () => new Stream(9))
    for (const stream of streams) {
      keepalive.add(stream)
      pass(91)
    }
    pass(5 * INTERVAL_MS)
    for (const stream of streams) {
      expect(stream.beats).to.have.length.at.least(5)
      for (const distance of distances(stream)) expect(distance).to.be.within(INTERVAL_MS, INTERVAL_MS + LATE_MS)
    }
  })

  it('streams that are due at about the same time share a timer', () => {
    const keepalive = createKeepalive(INTERVAL_MS, now)
    const streams = Array.from({ length: 40 }, () => new Stream())
    for (const stream of streams) {
      keepalive.add(stream)
      pass(1)
    }
    pass(INTERVAL_MS + LATE_MS)
    expect(new Set(streams.flatMap(({ beats }) => beats))).to.have.property('size', 2)
  })

  it('after a stall of several intervals each stream gets one comment, not one for each', () => {
    const keepalive = createKeepalive(INTERVAL_MS, now)
    const stream = new Stream()
    keepalive.add(stream)
    clockMs += 4 * INTERVAL_MS
    pass(2 * INTERVAL_MS)
    expect(stream.beats).to.deep.equal([5 * INTERVAL_MS, 6 * INTERVAL_MS])
  })

  it('a stream that has left gets no more comments, also when it leaves during its own comment', () => {
    const keepalive = createKeepalive(INTERVAL_MS, now)
    const [leaving, staying] = [new Stream(), new Stream()]
    const place = keepalive.add(leaving)
    keepalive.add(staying)
    leaving.sendKeepalive = () => {
      leaving.beats.push(clockMs)
      place.leave()
    }
    pass(3 * INTERVAL_MS + LATE_MS)
    expect(leaving.beats).to.have.length(1)
    expect(staying.beats).to.have.length(3)
  })

  it('one timer serves all streams, stops with the last one, runs again with the next, and does not keep the process alive', () => {
    mock.timers.reset()
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const set = mock.method(globalThis, 'setTimeout')
    const cleared = mock.method(globalThis, 'clearTimeout')
    const keepalive = createKeepalive(INTERVAL_MS)
    const places = Array.from({ length: 100 }, () => keepalive.add(new Stream()))
    expect(timers()).to.equal(before) // An unref'd timer is not an active resource.
    expect(set.mock.callCount()).to.equal(1)
    for (const place of places) place.leave()
    expect(cleared.mock.callCount()).to.equal(1)
    keepalive.add(new Stream()).leave()
    expect([set.mock.callCount(), cleared.mock.callCount()]).to.deep.equal([2, 2])
    mock.restoreAll()
  })
})

import { expect } from 'chai'
import { createKeepalive, type KeepaliveTarget } from '../../../services/gateway/streams/keepalive.ts'

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

/** A stream that notes the times of its comments. */
class Stream implements KeepaliveTarget {
  readonly beats: number[] = []
  #wanted = 0
  #done: (() => void) | undefined

  sendKeepalive(): void {
    this.beats.push(performance.now())
    if (this.beats.length >= this.#wanted) this.#done?.()
  }

  times(count: number): Promise<void> {
    this.#wanted = count
    return new Promise((resolve) => {
      this.#done = resolve
    })
  }
}

describe('the keepalive wheel', () => {
  it('api.md Limits: each stream gets one comment per interval, the first after a whole interval', async () => {
    const keepalive = createKeepalive(300)
    const streams = [new Stream(), new Stream()]
    const start = performance.now()
    const leavings = streams.map((stream) => keepalive.add(stream))
    await Promise.all(streams.map((stream) => stream.times(2)))
    for (const stream of streams) {
      const [first = 0, second = 0] = stream.beats
      expect(first - start).to.be.at.least(290)
      expect(second - first).to.be.within(250, 1_000)
    }
    for (const leave of leavings) leave()
  })

  it('streams that open at different times get their comments at different times', async () => {
    const keepalive = createKeepalive(300)
    const [first, second, clock] = [new Stream(), new Stream(), new Stream()]
    const other = createKeepalive(100)
    const leavings = [keepalive.add(first)]
    leavings.push(other.add(clock)) // Started later: when this wheel has completed a turn, the other one has too.
    await clock.times(1)
    leavings.push(keepalive.add(second))
    await second.times(1)
    expect((second.beats[0] ?? 0) - (first.beats[0] ?? 0)).to.be.greaterThan(50)
    for (const leave of leavings) leave()
  })

  it('one timer serves all streams, it stops with the last one, and does not keep the process alive', () => {
    const before = timers()
    const keepalive = createKeepalive(15_000)
    const streams = Array.from({ length: 100 }, () => new Stream())
    const leavings = streams.map((stream) => keepalive.add(stream))
    expect(timers()).to.equal(before) // An unref'd timer is not an active resource.
    for (const leave of leavings) leave()
    expect(timers()).to.equal(before)
  })

  it('a stream that has left gets no more comments, also when it leaves during its own comment', async () => {
    const keepalive = createKeepalive(100)
    const leaving = new Stream()
    const staying = new Stream()
    const sendKeepalive = leaving.sendKeepalive.bind(leaving)
    leaving.sendKeepalive = () => {
      sendKeepalive()
      leave()
    }
    const leave = keepalive.add(leaving)
    const leaveLast = keepalive.add(staying)
    await staying.times(3)
    expect(leaving.beats).to.have.length(1)
    leaveLast()
  })
})

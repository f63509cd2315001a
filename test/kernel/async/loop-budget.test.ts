import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { eventLoop, LoopBudget } from '../../../shared/kernel/async/loop-budget.ts'
import { longestStall } from '../../support/stall.ts'

const block = (ms: number) => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

/** Records `events` events that take `ms` each, and calls `onEvent` for each. */
async function record(loop: LoopBudget, { events, ms }: { events: number; ms: number }, onEvent: () => void) {
  for (let i = 0; i < events; i++) {
    const turn = loop.enter()
    if (turn) await turn
    block(ms)
    onEvent()
  }
}

describe('the event loop that the runs of a process share', () => {
  it('gives way to other work between two long events, also when they belong to different runs', async () => {
    const loop = new LoopBudget(4)
    let [events, most] = [0, 0]
    const runs = Promise.all(Array.from({ length: 10 }, () => record(loop, { events: 2, ms: 5 }, () => events++)))
    const state = { isOver: false }
    void runs.then(() => {
      state.isOver = true
    })
    while (!state.isOver) {
      const before = events
      await nextLoopTurn()
      most = Math.max(most, events - before)
    }
    expect(events).to.equal(20)
    expect(most).to.be.at.most(2)
  })

  it('lets short events through in the same turn, without a promise', () => {
    const loop = new LoopBudget(10_000)
    expect(Array.from({ length: 1_000 }, () => loop.enter())).to.deep.equal(Array(1_000).fill(undefined))
  })

  it('serves waiting runs in order of arrival, and lets none overtake them', async () => {
    const loop = new LoopBudget(1)
    void loop.enter()
    block(2)
    const order: number[] = []
    const waiting = [1, 2, 3].map((n) =>
      Promise.resolve(loop.enter()).then(() => {
        order.push(n)
        block(2)
      }),
    )
    await Promise.all(waiting)
    expect(order).to.deep.equal([1, 2, 3])
  })

  it('begins a new turn after an idle time', async () => {
    const loop = new LoopBudget(1)
    void loop.enter()
    await nextLoopTurn()
    block(2)
    expect(loop.enter()).to.equal(undefined)
    await nextLoopTurn()
  })

  it('many works at the same time block the event loop together no longer than one of them', async () => {
    const stall = await longestStall(() =>
      Promise.all(Array.from({ length: 64 }, () => record(eventLoop, { events: 40, ms: 0.5 }, () => {}))),
    )
    expect(stall).to.be.lessThan(100)
  })
})

import { expect } from 'chai'
import { runInLanes } from '../../scripts/testing/lanes.ts'

/** Runs seven items in at most five lanes, and three behind them in at most two, on a CPU that is idle for the given share. */
async function runTen(idleShare: number): Promise<{ order: number[]; most: number; mostAtEnd: number }> {
  const order: number[] = []
  let [running, most, mostAtEnd] = [0, 0, 0]
  const run = async ({ at, lanes }: { at: number; lanes: number }) => {
    order.push(at)
    most = Math.max(most, ++running)
    if (lanes === 2) mostAtEnd = Math.max(mostAtEnd, running)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    running--
  }
  await runInLanes(
    Array.from({ length: 10 }, (_, at) => ({ at, lanes: at < 7 ? 5 : 2 })),
    run,
    () => new Promise((resolve) => setImmediate(resolve, idleShare)),
  )
  return { order, most, mostAtEnd }
}

describe('the lanes of scripts/test', () => {
  it('run every item once, in their order', async () => {
    expect((await runTen(0.5)).order).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('are all used while CPU is left, and three while there is none', async () => {
    expect((await runTen(0.1)).most).to.equal(5)
    expect((await runTen(0.09)).most).to.equal(3)
  })

  it('hold no item that begins beside as many others as its own lanes', async () => {
    expect((await runTen(0.5)).mostAtEnd).to.equal(2)
  })
})

import { expect } from 'chai'
import { runInLanes } from '../../scripts/testing/lanes.ts'

/** Runs ten items in five lanes on a CPU that is idle for the given share, and notes the order and how many ran together. */
async function runTen(idleShare: number): Promise<{ order: number[]; most: number }> {
  const order: number[] = []
  let [running, most] = [0, 0]
  const run = async (item: number) => {
    order.push(item)
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    running--
  }
  await runInLanes(
    Array.from({ length: 10 }, (_, i) => i),
    5,
    run,
    () => new Promise((resolve) => setImmediate(resolve, idleShare)),
  )
  return { order, most }
}

describe('the lanes of scripts/test', () => {
  it('run every item once, in their order', async () => {
    expect((await runTen(0.5)).order).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('are all used while CPU is left, and three while there is none', async () => {
    expect((await runTen(0.1)).most).to.equal(5)
    expect((await runTen(0.09)).most).to.equal(3)
  })
})

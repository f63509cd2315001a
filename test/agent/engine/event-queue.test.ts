import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { EventQueue } from '../../../shared/agent/engine/event-queue.ts'

/** Reads the whole iteration into `items`. */
function readAll(queue: EventQueue<number>) {
  const items: number[] = []
  const reading = (async () => {
    for await (const batch of queue) items.push(...batch)
  })()
  return { items, reading }
}

/** Whether the promise has settled by the next turn of the event loop. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let hasSettled = false
  void promise.then(() => (hasSettled = true))
  await nextLoopTurn()
  return hasSettled
}

describe('the event queue of a tool step', () => {
  it('gives its items in order of arrival, those from before the reader and those after', async () => {
    const queue = new EventQueue<number>(10)
    queue.push(1)
    const { items, reading } = readAll(queue)
    await nextLoopTurn()
    queue.push(2)
    queue.push(3)
    await nextLoopTurn()
    expect(items).to.deep.equal([1, 2, 3])
    queue.push(4)
    queue.close()
    await reading
    expect(items).to.deep.equal([1, 2, 3, 4])
  })

  it('ends for a reader that waits when it is closed, and drops later items', async () => {
    const queue = new EventQueue<number>(10)
    const { items, reading } = readAll(queue)
    await nextLoopTurn()
    queue.close()
    await reading
    queue.push(1)
    queue.offer(2)
    await queue.send(3)
    expect(items).to.deep.equal([])
    const late = readAll(queue)
    await late.reading
    expect(late.items).to.deep.equal([])
  })

  it('takes offered items only while there is room, pushed ones always', async () => {
    const queue = new EventQueue<number>(2)
    queue.offer(1)
    queue.offer(2)
    queue.offer(3)
    queue.push(4)
    queue.close()
    const { items, reading } = readAll(queue)
    await reading
    expect(items).to.deep.equal([1, 2, 4])
  })

  it('a sender continues at once while there is room', async () => {
    const queue = new EventQueue<number>(3)
    expect(await isSettled(queue.send(1))).to.equal(true)
    expect(await isSettled(queue.send(2))).to.equal(true)
    expect(await isSettled(queue.send(3))).to.equal(false)
    queue.close()
  })

  it('a sender at the limit waits until the reader has caught up', async () => {
    const queue = new EventQueue<number>(1)
    const [first, second] = [queue.send(1), queue.send(2)]
    expect(await isSettled(Promise.race([first, second]))).to.equal(false)
    const { items, reading } = readAll(queue)
    await Promise.all([first, second])
    expect(items).to.deep.equal([1, 2])
    queue.close()
    await reading
  })

  it('waiting senders continue when it is closed without a reader', async () => {
    const queue = new EventQueue<number>(1)
    const sent = queue.send(1)
    queue.close()
    await sent
  })

  it('gives items that arrive while earlier ones are read', async () => {
    const queue = new EventQueue<number>(10)
    queue.push(1)
    const iterator = queue[Symbol.asyncIterator]()
    expect((await iterator.next()).value).to.deep.equal([1])
    queue.push(2)
    queue.push(3)
    queue.close()
    expect((await iterator.next()).value).to.deep.equal([2, 3])
    expect((await iterator.next()).done).to.equal(true)
  })
})

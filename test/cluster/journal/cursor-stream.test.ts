import { expect } from 'chai'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import { Journal } from '../../../shared/cluster/journal/journal.ts'
import { eventLoop } from '../../../shared/kernel/async/loop-budget.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { newBudget } from '../../support/journal-budget.ts'

const delta = (text: string): AgentEvent => ({ type: 'text_delta', text })

/** Takes all the time that this turn of the event loop has for pieces of work. */
function useUpTurn(): void {
  void eventLoop.enter()
  const until = performance.now() + 10
  while (performance.now() < until);
}

describe('the stream of a cursor', () => {
  it('gives way to other work before each further piece of a large frame, and before nothing else', async () => {
    const journal = new Journal(newBudget())
    for (const text of ['a', 'x'.repeat(66_000), 'b']) journal.append(delta(text))
    const stream = new CursorStream(journal.follow(0))
    const gaveWay: boolean[] = []
    for (let reads = 0; reads < 7; reads++) {
      const turn = { isOver: false }
      setImmediate(() => (turn.isOver = true))
      useUpTurn()
      await stream.next()
      gaveWay.push(turn.isOver)
      await new Promise(setImmediate)
    }
    expect(gaveWay).to.deep.equal([false, false, true, true, true, true, false])
  })

  it('a small frame that was waited for is passed on in the turn in which it was reported', async () => {
    const journal = new Journal(newBudget())
    const stream = new CursorStream(journal.follow(0))
    const turn = { isOver: false }
    const read = stream.next().then(() => turn.isOver)
    journal.append(delta('a'))
    setImmediate(() => (turn.isOver = true))
    useUpTurn()
    expect(await read).to.equal(false)
  })
})

import { expect } from 'chai'
import { MessageQueue } from '../../../services/worker/sessions/message-queue.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { Run } from '../../../shared/work/runs/run.ts'
import type { RunIdentity } from '../../../shared/work/runs/run-identity.ts'
import { Runs } from '../../../shared/work/runs/runs.ts'
import { DONE } from '../events.ts'

describe('the queue of messages of a session', () => {
  function setUp() {
    const begun: string[] = []
    const runs = new Runs(
      { maxLive: 100, resumeMs: 60_000, maxJournalBytes: 1e6 },
      { onBug: (_run, cause) => expect.fail(String(cause)), onEvent: () => {}, onForgotten: () => {} },
    )
    const ended: string[] = []
    const queue = new MessageQueue(() => ended.push('ended'))
    /** Posts a message whose run lasts until the returned function ends it. */
    const post = (
      id: string,
      { isHeld = false, wait, ...more }: Pick<RunIdentity, 'isHeld' | 'wait'> & { if_waiting?: 'deny' } = {},
    ) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const started = Promise.withResolvers<void>()
      const run = runs.open({ id, tenant: DEFAULT_TENANT, sessionId: 's1', isHeld, wait })
      queue.post({
        run,
        message: { prompt: id, ...more },
        async *execute() {
          begun.push(id)
          started.resolve()
          await promise
          yield DONE
        },
      })
      const end = async () => {
        resolve()
        await run.ended
      }
      return { run, started: started.promise, end }
    }
    const idsOf = (queued: readonly { run: Run }[]) => queued.map(({ run }) => run.id)
    return { queue, post, begun, ended, waiting: () => idsOf(queue.waiting), idsOf }
  }

  it('D4.6: begins one message at a time, the oldest first', async () => {
    const { queue, post, begun, waiting, ended } = setUp()
    const [one, two, three] = [post('one'), post('two'), post('three')]
    await one.started
    expect([begun, waiting(), queue.active?.id]).to.deep.equal([['one'], ['two', 'three'], 'one'])
    await one.end()
    await two.started
    expect([begun, waiting()]).to.deep.equal([['one', 'two'], ['three']])
    await two.end()
    await three.end()
    expect(begun).to.deep.equal(['one', 'two', 'three'])
    expect([queue.isEmpty, queue.isLeaving, ended.length]).to.deep.equal([true, false, 3])
  })

  it('D39.1: a message that does not wait for permissions supersedes all before it, once it is accepted', async () => {
    const { post } = setUp()
    const [one, two] = [post('one'), post('two')]
    const refused = post('refused', { isHeld: true, if_waiting: 'deny' })
    refused.run.refuse()
    const [three, held] = [post('three'), post('held', { isHeld: true, if_waiting: 'deny' })]
    const supersedes = () => [one, two, three, held].map(({ run }) => run.superseded.aborted)
    await held.run.whenAccepted.call(refused.run)
    expect(supersedes()).to.deep.equal([false, false, false, false])
    held.run.accept()
    await held.run.whenAccepted()
    expect(supersedes()).to.deep.equal([true, true, true, false])
  })

  it('D4.6: has room for eight messages behind the one that is answered', () => {
    const { queue, post } = setUp()
    for (let i = 0; i < 9; i++) {
      queue.checkRoom('s1')
      post(`run_${i}`)
    }
    expect(() => queue.checkRoom('s1')).to.throw(/session s1 has 8 messages waiting/)
  })

  it('a held queue ends what it has begun and begins nothing, until it is resumed', async () => {
    const { queue, post, begun } = setUp()
    const [one, two] = [post('one'), post('two')]
    await one.started
    const held = queue.hold()
    expect([queue.holds(one.run), queue.holds(two.run)]).to.deep.equal([false, true])
    await one.end()
    await held
    expect(begun).to.deep.equal(['one'])
    queue.resume()
    expect(queue.holds(two.run)).to.equal(false)
    await two.started
    await two.end()
  })

  it('a held queue that is retired gives away what waits, and an open one answers it and is gone then', async () => {
    const { queue, post, idsOf } = setUp()
    const one = post('one')
    post('two')
    await one.started
    const held = queue.hold()
    await one.end()
    await held
    expect(idsOf(queue.retire())).to.deep.equal(['two'])
    expect(() => post('three')).to.throw('a session that is gone takes no message')

    const open = setUp()
    const [first, second] = [open.post('first'), open.post('second')]
    await first.started
    expect(open.queue.retire()).to.deep.equal([])
    expect(() => open.post('third')).to.throw('a session that is leaving takes no message')
    await first.end()
    await second.started
    await second.end()
    expect(open.begun).to.deep.equal(['first', 'second'])
  })

  it('a message that was given away while the one before it is answered is not begun here', async () => {
    const { queue, post, begun, idsOf, waiting } = setUp()
    const one = post('one')
    post('two')
    await one.started
    const held = queue.hold()
    expect(idsOf(queue.retire())).to.deep.equal(['two'])
    await one.end()
    await held
    expect([begun, waiting(), queue.active]).to.deep.equal([['one'], [], undefined])
  })

  it('a message that is cancelled while it waits is not given away', async () => {
    const { queue, post, waiting } = setUp()
    const [one, two] = [post('one'), post('two')]
    await one.started
    two.run.cancel('cancelled')
    expect(waiting()).to.deep.equal([])
    void queue.hold()
    expect(queue.retire()).to.deep.equal([])
    await one.end()
  })

  it('a message that waits for a place holds up those behind it, and is given away by a held queue as one that has not begun', async () => {
    const { queue, post, begun, waiting, idsOf } = setUp()
    const wait = () => {
      const turn = Promise.withResolvers<'placed' | 'late'>()
      return { turn, of: { turn: turn.promise, standing: undefined, retryAfterSecs: 1, leave: () => {} } }
    }
    const [placed, late, moved] = [wait(), wait(), wait()]
    const [one, two] = [post('one', { wait: placed.of }), post('two', { wait: late.of })]
    const [three, four] = [post('three'), post('four', { wait: moved.of })]
    expect([begun, queue.active, waiting()]).to.deep.equal([[], undefined, ['one', 'two', 'three', 'four']])
    placed.turn.resolve('placed')
    await one.started
    await one.end()
    late.turn.resolve('late')
    await two.run.ended
    await three.started
    await three.end()
    await queue.hold()
    moved.turn.resolve('placed')
    expect([begun, idsOf(queue.retire())]).to.deep.equal([['one', 'three'], ['four']])
    four.run.abandon()
  })
})

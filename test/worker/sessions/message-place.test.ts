import { expect } from 'chai'
import { checkPlace, placeOf } from '../../../services/worker/sessions/message-place.ts'
import { Conversation } from '../../../shared/agent/engine/conversation.ts'
import { identity, setUp, waitFor } from './session-setup.ts'

describe('the place of a message in its session', () => {
  function history() {
    const conversation = new Conversation({ messages: [] }, { runId: () => 'run_1' })
    conversation.prepare({ client: 'u1' })
    conversation.append({ role: 'user', text: 'one' }, { role: 'assistant', blocks: [{ type: 'text', text: '1' }] })
    const { all } = conversation
    return { all, ids: all.map(({ stamp }) => stamp?.id ?? '') }
  }

  it('D23.5a: after names a message, or the last one of a run, or with null nothing; left out it is the head', () => {
    const { all, ids } = history()
    expect(placeOf({ prompt: 'x', after: ids[0] ?? '' }, all)).to.equal(ids[0])
    expect(placeOf({ prompt: 'x', after: 'run_1' }, all)).to.equal(ids[1])
    expect(placeOf({ prompt: 'x', after: null }, all)).to.equal(null)
    expect(placeOf({ prompt: 'x' }, all)).to.equal(undefined)
  })

  it('D38: a list names the last of its messages that the session has, and a message alone stands beside the one with its id', () => {
    const { all, ids } = history()
    expect(placeOf({ prompt: 'x', path: ['u1', 'unknown'] }, all)).to.equal(ids[0])
    expect(placeOf({ prompt: 'x', path: [] }, all)).to.equal(null)
    expect(placeOf({ prompt: 'x', id: 'u1' }, all)).to.equal(null)
    expect(placeOf({ prompt: 'x', id: 'u2' }, all)).to.equal(undefined)
  })

  it('D23.5a: a message behind one that the session does not have is refused, unless that one waits', () => {
    const { all } = history()
    const known = { all, accepted: new Set(['run_2']) }
    expect(() => checkPlace({ prompt: 'x', after: 'msg_no' }, known)).to.throw('after must be the id of a message')
    expect(() => checkPlace({ prompt: 'x', path: ['no'] }, known)).to.throw('after must be the id of a message')
    for (const after of ['run_2', 'u1', null]) checkPlace({ prompt: 'x', after }, known)
  })

  it('D23.5a: a message may follow one that is being answered, or that waits', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const gate = Promise.withResolvers<void>()
    const [first, second] = [post(session, waitFor(gate.promise)), post(session, waitFor(gate.promise))]
    await Promise.resolve()
    for (const { id } of [first, second]) session.checkPlace({ prompt: 'x', after: id })
    expect(() => session.checkPlace({ prompt: 'x', after: 'run_no' })).to.throw('after must be')
    gate.resolve()
    await Promise.all([first.ended, second.ended])
  })
})

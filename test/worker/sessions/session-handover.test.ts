import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { identity, setUp, timersOf, turnOf, waitFor } from './session-setup.ts'

describe('a session that was handed over', () => {
  it('outlives its old idle timer when it is adopted again', async () => {
    const { sessions, post } = setUp({ maxSessions: 10, idleMs: 1 })
    const first = sessions.create(identity)
    sessions.release(first)
    const again = sessions.adopt(first.state)
    const gate = Promise.withResolvers<void>()
    const run = post(again, waitFor(gate.promise)) // While it runs it has no idle timer of its own.
    await timersOf(1)
    expect(sessions.get(DEFAULT_TENANT, 's1')).to.equal(again)
    again.retire()
    gate.resolve()
    await run.ended
  })

  it('has no idle timer after a run that ends later', async () => {
    const { sessions, post } = setUp({ maxSessions: 10, idleMs: 1 })
    const first = sessions.create(identity)
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const late = post(first, waitFor(gates[0].promise))
    sessions.release(first)
    expect(sessions.count).to.equal(0)
    const again = sessions.adopt(first.state)
    const run = post(again, waitFor(gates[1].promise))
    gates[0].resolve()
    await late.ended
    await timersOf(1)
    expect(sessions.get(DEFAULT_TENANT, 's1')).to.equal(again)
    again.retire()
    gates[1].resolve()
    await run.ended
  })

  it('is unknown here, and is not reported as removed', async () => {
    const { sessions, removed } = setUp({ maxSessions: 10, idleMs: 1 })
    const session = sessions.create(identity)
    sessions.release(session)
    expect(sessions.count).to.equal(0)
    expect(() => sessions.get(DEFAULT_TENANT, 's1')).to.throw('no session s1')
    await timersOf(1)
    expect(await Promise.race([removed, Promise.resolve('not removed')])).to.equal('not removed')
  })

  it('D4.7: ends the messages of its held queue with session_deleted when it is deleted before another worker has it', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    await session.hold()
    const run = post(session, turnOf('m'))
    await sessions.remove(DEFAULT_TENANT, 's1')
    expect([run.status, session.isBusy]).to.deep.equal(['cancelled', false])
    session.resume()
    expect(session.isBusy).to.equal(false)
  })

  it('D5.7, D23.2: keeps its history, creation time, title, usage, memory entries and the tools that its client has allowed', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    await post(session, turnOf('m')).ended
    session.title = 'Boats'
    session.conversation.append({ role: 'user', text: 'my boat is called Argo' })
    await session.start().services.memory?.keep(['The boat is called Argo.'])
    session.remembered.add('Write')
    const other = setUp().sessions.adopt(JSON.parse(JSON.stringify(session.state)))
    expect(other.remembered.entries).to.deep.equal(session.remembered.entries).and.have.length(1)
    expect(other.summary).to.deep.equal(session.summary).and.include({ title: 'Boats', model: 'm' })
    expect(other.summary.usage.turns).to.equal(1)
    expect(other.conversation.messages).to.deep.equal(session.conversation.messages)
    expect(other.start().background).to.equal(session.start().background).and.include('{"memory":"The boat')
    for (const each of [session, other]) each.retire()
  })
})

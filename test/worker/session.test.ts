import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Run, RunExecutor } from '../../services/worker/run.ts'
import { Runs } from '../../services/worker/runs.ts'
import type { Session } from '../../services/worker/session.ts'
import { Sessions } from '../../services/worker/sessions.ts'
import { CursorStream } from '../../shared/broker/journal/cursor-stream.ts'
import { newId } from '../../shared/ids.ts'
import { DEFAULT_TENANT, type TenantId } from '../../shared/tenant.ts'
import { DONE } from './events.ts'

const runs = () =>
  new Runs(
    { maxLive: 100, resumeMs: 60_000, maxJournalBytes: 1e6 },
    { onBug: (_run, cause) => expect.fail(String(cause)), onEvent: () => {}, onForgotten: () => {} },
  )

function setUp(limits = { maxSessions: 10, idleMs: 60_000 }) {
  const removed = Promise.withResolvers<Session>()
  const sessions = new Sessions(limits, removed.resolve)
  const known = runs()
  const post = (session: Session, execute: RunExecutor): Run => {
    session.checkRoom()
    const run = known.open({ id: newId('run'), tenant: session.tenant, sessionId: session.id })
    session.post(run, execute)
    return run
  }
  return { sessions, post, removed: removed.promise }
}

const identity = { id: 's1', tenant: DEFAULT_TENANT }

describe('sessions', () => {
  it('api.md Session: a session exists from its creation to its deletion', async () => {
    const { sessions, removed } = setUp()
    const session = sessions.create(identity)
    expect(sessions.get(DEFAULT_TENANT, 's1').summary).to.include({ session_id: 's1', message_count: 0 })
    await sessions.remove(DEFAULT_TENANT, 's1')
    expect(await removed).to.equal(session)
    expect(() => sessions.get(DEFAULT_TENANT, 's1')).to.throw('no session s1')
  })

  it('api.md Errors: an id that exists is 409; another tenant can use the same id for a session of its own', () => {
    const { sessions } = setUp()
    sessions.create(identity)
    expect(() => sessions.create(identity))
      .to.throw()
      .with.property('status', 409)
    const other = 'other' as TenantId
    expect(() => sessions.get(other, 's1'))
      .to.throw()
      .with.property('status', 404)
    expect(sessions.create({ id: 's1', tenant: other })).not.to.equal(sessions.get(DEFAULT_TENANT, 's1'))
  })

  it('D1.3 SESSIONS_PER_WORKER: one more is 429 with Retry-After', () => {
    const { sessions } = setUp({ maxSessions: 1, idleMs: 60_000 })
    sessions.create(identity)
    expect(() => sessions.create({ ...identity, id: 's2' }))
      .to.throw()
      .with.property('retryAfterSecs', 60)
  })

  it('D1.3 SESSION_IDLE_SECS: a session without messages is removed after the time', async () => {
    const { sessions, removed } = setUp({ maxSessions: 1, idleMs: 1 })
    const session = sessions.create(identity)
    expect(await removed).to.equal(session)
    expect(() => sessions.get(DEFAULT_TENANT, 's1')).to.throw()
  })

  it('D4.6: messages are answered one at a time, in order of arrival', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const order: string[] = []
    const execute = (name: string): RunExecutor =>
      async function* () {
        order.push(`${name} starts`)
        await new Promise(setImmediate)
        order.push(`${name} ends`)
        yield DONE
      }
    const [first, second] = [post(session, execute('1')), post(session, execute('2'))]
    expect(second.status).to.equal('waiting')
    await Promise.all([first.ended, second.ended])
    expect(order).to.deep.equal(['1 starts', '1 ends', '2 starts', '2 ends'])
  })

  it('D4.6: eight messages may wait behind the one that is answered; the ninth is 429', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const gate = Promise.withResolvers<void>()
    const held: RunExecutor = async function* () {
      await gate.promise
      yield DONE
    }
    const posted = Array.from({ length: 9 }, () => post(session, held))
    expect(() => post(session, held))
      .to.throw()
      .with.property('status', 429)
    gate.resolve()
    await Promise.all(posted.map(({ ended }) => ended))
    expect(() => session.checkRoom()).not.to.throw()
  })

  it('D4.7: deleting a session ends its running and waiting runs with session_deleted', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const untilCancelled: RunExecutor = async function* (_run, signal) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      yield { type: 'error', error: 'x', code: signal.reason, detail: '', suggestion: '', retryable: false }
    }
    const [running, waiting] = [post(session, untilCancelled), post(session, untilCancelled)]
    await new Promise(setImmediate)
    await sessions.remove(DEFAULT_TENANT, 's1')
    for (const run of [running, waiting]) {
      expect(run.status).to.equal('cancelled')
      for await (const { text } of new CursorStream(run.follow(0)))
        expect(String(text)).to.include('"code":"session_deleted"')
    }
  })

  it('a message that is cancelled while it waits does not hold up the next one', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const gate = Promise.withResolvers<void>()
    const say: RunExecutor = async function* () {
      await gate.promise
      yield DONE
    }
    const [first, second, third] = [post(session, say), post(session, say), post(session, say)]
    second.cancel('cancelled')
    await second.ended
    gate.resolve()
    await Promise.all([first.ended, third.ended])
    expect([first.status, second.status, third.status]).to.deep.equal(['done', 'cancelled', 'done'])
  })

  it('D5.7: a message starts from the history with the answers to all earlier messages', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const counts: number[] = []
    const answer: RunExecutor = async function* () {
      const { conversation } = session.start()
      counts.push(conversation.messageCount)
      conversation.append({ role: 'user', text: 'question' })
      yield DONE
    }
    const [first, second] = [post(session, answer), post(session, answer)]
    await Promise.all([first.ended, second.ended])
    expect(counts).to.deep.equal([0, 1])
  })

  it('D1.3 SESSION_IDLE_SECS: a session with a run is not removed, and its time starts anew after the run', async () => {
    const { sessions, post, removed } = setUp({ maxSessions: 1, idleMs: 1 })
    const session = sessions.create(identity)
    const gate = Promise.withResolvers<void>()
    const run = post(session, waitFor(gate.promise))
    await timersOf(1)
    expect(sessions.get(DEFAULT_TENANT, 's1')).to.equal(session)
    gate.resolve()
    await run.ended
    expect(await removed).to.equal(session)
  })
})

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
    for (const forget of ['release', 'releaseAll'] as const) {
      const { sessions, post } = setUp({ maxSessions: 10, idleMs: 1 })
      const first = sessions.create(identity)
      const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
      const late = post(first, waitFor(gates[0].promise))
      sessions[forget](first)
      const again = sessions.adopt(first.state)
      const run = post(again, waitFor(gates[1].promise))
      gates[0].resolve()
      await late.ended
      await timersOf(1)
      expect(sessions.get(DEFAULT_TENANT, 's1'), forget).to.equal(again)
      again.retire()
      gates[1].resolve()
      await run.ended
    }
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

  it('D5.7: keeps its history, its creation time and its memory entries', async () => {
    const { sessions } = setUp()
    const session = sessions.create(identity)
    session.conversation.append({ role: 'user', text: 'my boat is called Argo' })
    await session.start().services.memory?.keep(['The boat is called Argo.'])
    const other = setUp().sessions.adopt(JSON.parse(JSON.stringify(session.state)))
    expect(other.summary).to.deep.equal(session.summary)
    expect(other.conversation.messages).to.deep.equal(session.conversation.messages)
    expect(other.start().background).to.equal(session.start().background).and.include('- [memory] The boat')
    for (const each of [session, other]) each.retire()
  })
})

const waitFor = (gate: Promise<void>): RunExecutor =>
  async function* () {
    await gate
    yield DONE
  }

/** Resolves after all timers of this length that were started before: Node runs them in their order. */
const timersOf = (ms: number): Promise<void> => sleep(ms)

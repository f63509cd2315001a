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
  it('api.md Session: a session is known from its creation to its deletion', async () => {
    const { sessions, removed } = setUp()
    const session = sessions.create(identity)
    expect(sessions.get(DEFAULT_TENANT, 's1').summary).to.include({ session_id: 's1', message_count: 0 })
    await sessions.remove(DEFAULT_TENANT, 's1')
    expect(await removed).to.equal(session)
    expect(() => sessions.get(DEFAULT_TENANT, 's1')).to.throw('no session s1')
  })

  it('api.md Errors: an id that exists is 409; another tenant may use the same id and sees only its own', () => {
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

  it('D1.3 SESSION_IDLE_SECS: a session that nothing is asked of is removed', async () => {
    const { sessions, removed } = setUp({ maxSessions: 1, idleMs: 1 })
    const session = sessions.create(identity)
    expect(await removed).to.equal(session)
    expect(() => sessions.get(DEFAULT_TENANT, 's1')).to.throw()
  })

  it('D4.6: messages are answered one at a time, in the order in which they came', async () => {
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

  it('D4.7: deleting a session ends what runs and what waits with session_deleted', async () => {
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

  it('a message that is cancelled while it waits lets the next one through', async () => {
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
})

// Tests session.ts and session-content.ts.
import { expect } from 'chai'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { Run, RunExecutor } from '../../../shared/work/runs/run.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'
import { say } from '../../work/runs/runs-setup.ts'
import { DONE } from '../events.ts'
import { identity, setUp, timersOf, turnOf, waitFor } from './session-setup.ts'

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
    expect(() => sessions.create({ ...identity, token: 'a2' }))
      .to.throw()
      .with.property('status', 409)
    const other = tenantId('other')
    expect(() => sessions.get(other, 's1'))
      .to.throw()
      .with.property('status', 404)
    expect(sessions.create({ id: 's1', tenant: other, token: 'a1' })).not.to.equal(sessions.get(DEFAULT_TENANT, 's1'))
  })

  it('a creation that arrives again under the same token returns the session that it has created', () => {
    const { sessions } = setUp({ maxSessions: 1, idleMs: 60_000 })
    const session = sessions.create(identity)
    expect(sessions.create(identity)).to.equal(session)
    session.retire()
  })

  it('D1.3 SESSIONS_PER_WORKER: one more is 429 with Retry-After', () => {
    const { sessions } = setUp({ maxSessions: 1, idleMs: 60_000 })
    sessions.create(identity)
    expect(() => sessions.create({ ...identity, id: 's2' }))
      .to.throw()
      .with.property('retryAfterSecs', 60)
  })

  it('D1.3 SESSIONS_PER_TENANT: a tenant with its share gets 429, and another tenant still has room', () => {
    const { sessions } = setUp({ maxSessions: 3, maxPerTenant: 1 })
    sessions.create(identity)
    expect(() => sessions.create({ ...identity, id: 's2' }))
      .to.throw('this tenant has its share of the sessions here')
      .with.property('status', 429)
    sessions.create({ ...identity, id: 's2', tenant: tenantId('other') })
  })

  it('D1.3 SESSIONS_PER_TENANT: a deleted session makes room, and so does one that another worker has taken', async () => {
    const { sessions } = setUp({ maxSessions: 1 })
    sessions.create(identity)
    await sessions.remove(DEFAULT_TENANT, 's1')
    sessions.release(sessions.create(identity))
    sessions.adopt({ ...identity, createdAt: '', messages: [] })
    sessions.adopt({ ...identity, createdAt: '', messages: [] })
    await sessions.remove(DEFAULT_TENANT, 's1')
    sessions.create(identity)
  })

  it('D1.3 SESSION_MEMORY_MB: above it, new sessions and messages are 429 until conversations are shorter', async () => {
    const { sessions, post } = setUp({ maxBytes: 2_000 })
    const [one, two] = [sessions.create(identity), sessions.create({ ...identity, id: 's2' })]
    one.conversation.append({ role: 'user', text: 'x'.repeat(1_000) })
    await post(two, say).ended
    one.conversation.append({ role: 'user', text: 'é'.repeat(1_000) })
    for (const act of [() => post(two, say), () => sessions.create({ ...identity, id: 's3' })]) {
      expect(act).to.throw('the conversations on this server are as large as they may be').with.property('status', 429)
    }
    one.conversation.compact([{ role: 'user', text: 'short' }])
    await post(two, say).ended
    one.conversation.append({ role: 'user', text: 'x'.repeat(3_000) })
    await sessions.remove(DEFAULT_TENANT, 's1')
    await post(two, say).ended
  })

  it('D1.3 SESSION_MEMORY_MB: a tenant above its share is refused, and another tenant is not', () => {
    const { sessions } = setUp({ maxBytes: 2_000, maxBytesPerTenant: 1_000 })
    const large = sessions.create(identity)
    large.conversation.append({ role: 'user', text: 'x'.repeat(1_000) })
    expect(() => sessions.checkRoom(large)).to.throw('the conversations of this tenant are as large as they may be')
    sessions.checkRoom(sessions.create({ ...identity, tenant: tenantId('other') }))
  })

  it('api.md Session responses: the summary holds the creation time', () => {
    const { sessions } = setUp()
    const createdAt = '2026-01-02T03:04:05.006Z'
    const session = sessions.adopt({ ...identity, createdAt, messages: [] })
    expect(session.summary).to.include({ session_id: 's1', created_at: createdAt, message_count: 0 })
  })

  it('D23.2: its title is the first sentence of the first prompt, until it is changed', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    expect(session.summary.title).to.equal(null)
    await post(session, say, `  write\n\tone note. ${'Then another one. '.repeat(9)}`).ended
    expect(session.summary.title).to.equal('write one note.')
    session.title = 'Boats'
    await post(session, say, 'three').ended
    expect(session.summary.title).to.equal('Boats')
    const seeded = sessions.create({ ...identity, id: 's2' }, { messages: [{ role: 'user', text: 'from elsewhere' }] })
    expect(seeded.summary.title).to.equal('from elsewhere')
  })

  it('D23.2: names the run that answers a message now, and how many messages wait for it', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const gate = Promise.withResolvers<void>()
    const first = post(session, async function* (run) {
      session.conversation.append({ role: 'user', text: run.id })
      yield* waitFor(gate.promise)(run, run.signal)
    })
    const [second, third] = [post(session, waitFor(gate.promise)), post(session, turnOf('last'))]
    await until(() => session.conversation.messages.length > 0, { what: 'the first run to begin' })
    expect(session.summary).to.include({ active_run_id: first.id, queued: 2, model: null })
    const [message] = session.conversation.messages
    expect(message?.stamp?.runId).to.equal(first.id)
    expect(session.summary.last_message_at).to.equal(message?.stamp?.at)
    second.cancel('cancelled')
    expect(session.summary).to.include({ active_run_id: first.id, queued: 1 })
    gate.resolve()
    await first.ended
    expect(session.summary.active_run_id).not.to.equal(first.id)
    await third.ended
    expect(session.summary).to.include({ active_run_id: null, queued: 0, model: 'last' })
    session.retire()
  })

  it('D1.3 SESSION_IDLE_SECS: a session is not removed before the time', async () => {
    const { sessions, removed } = setUp({ maxSessions: 1, idleMs: 60_000 })
    sessions.create(identity)
    await timersOf(1)
    expect(await Promise.race([removed, Promise.resolve('not removed')])).to.equal('not removed')
  })

  it('D4.7: a deleted session has no idle timer, even when its run ends late', async () => {
    const { sessions, post } = setUp({ maxSessions: 1, idleMs: 1 })
    const first = sessions.create(identity)
    const gate = Promise.withResolvers<void>()
    const begun = post(first, waitFor(gate.promise))
    await until(() => begun.status === 'running', { what: 'the run to begin' })
    const removing = sessions.remove(DEFAULT_TENANT, 's1')
    const again = sessions.create(identity)
    const held = Promise.withResolvers<void>()
    const run = post(again, waitFor(held.promise))
    gate.resolve()
    await removing
    await timersOf(1)
    expect(sessions.get(DEFAULT_TENANT, 's1')).to.equal(again)
    again.retire()
    held.resolve()
    await run.ended
  })

  it('D1.3 SESSION_IDLE_SECS: a session without messages is removed after the time', async () => {
    const { sessions, removed } = setUp({ maxSessions: 1, idleMs: 1 })
    const session = sessions.create(identity)
    expect(await removed).to.equal(session)
    expect(() => sessions.get(DEFAULT_TENANT, 's1')).to.throw()
  })

  it('D4.7: deleting a session ends its running and waiting runs with session_deleted', async () => {
    const { sessions, post } = setUp()
    const session = sessions.create(identity)
    const untilCancelled: RunExecutor = async function* (_run, signal) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      yield { type: 'error', error: 'x', code: signal.reason, detail: '', suggestion: '', retryable: false }
    }
    const [running, waiting] = [post(session, untilCancelled), post(session, untilCancelled)] as const
    await until(() => running.status === 'running', { what: 'the first run to begin' })
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
    const [first, second, third] = [1, 2, 3].map(() => post(session, waitFor(gate.promise))) as [Run, Run, Run]
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

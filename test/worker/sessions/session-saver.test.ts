import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Session } from '../../../services/worker/sessions/session.ts'
import { SessionSaver } from '../../../services/worker/sessions/session-saver.ts'
import { Sessions } from '../../../services/worker/sessions/sessions.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import { createSessionStore, lifeOf, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { RunEvent } from '../../../shared/kernel/events.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import type { Store } from '../../../shared/platform/store/port.ts'
import { storeUnavailable } from '../../../shared/platform/store/unavailable.ts'
import { aroundStore } from '../../support/around-store.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { useTestStore } from '../../support/test-store.ts'
import { DONE } from '../events.ts'
import { limitsOf } from './session-setup.ts'

const IDLE_MS = 60_000
const RESUME_MS = 30_000
const log = SILENT_LOG
const user = (text: string): Message => ({ role: 'user', text })
const answer = (text: string): Message => ({ role: 'assistant', blocks: [{ type: 'text', text }] })
const TURN_END: RunEvent = { type: 'turn_end', turn_number: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0 }

describe('the saver of sessions', () => {
  const file = useTestStore({ now: () => now })
  let store: Store
  let sessionStore: SessionStore
  let isAway = false
  let writes: number[] = []
  let begunAt: number[] = []
  let slowMs = 0
  let now = Date.now()
  let count = 0
  before(() => {
    store = aroundStore(file.store, (method, act, args) => {
      if (isAway) throw storeUnavailable('away')
      if (method !== 'insertMissing') return act()
      writes.push((args[0] as unknown[]).length)
      begunAt.push(performance.now())
      return slowMs === 0 ? act() : sleep(slowMs).then(act)
    })
    sessionStore = createSessionStore(store, { idleMs: IDLE_MS, resumeMs: RESUME_MS, now: () => now })
  })
  beforeEach(() => {
    isAway = false
    writes = []
    begunAt = []
    slowMs = 0
    now = Date.now()
  })

  function setUp({ waitMs = 5_000 } = {}) {
    const lost: Session[] = []
    const onLost = (session: Session) => void lost.push(session)
    const deps = { store: sessionStore, idleMs: IDLE_MS, batchMs: 5, waitMs, onLost, log, now: () => now }
    const saver = new SessionSaver(deps)
    const sessions = new Sessions(limitsOf({ maxSessions: 100 }), async () => true, {
      keep: (...args) => saver.keep(...args),
    })
    async function create(): Promise<Session> {
      const session = sessions.create({ id: `s${++count}`, tenant: TENANT, token: 'a1' })
      if (session.log) await sessionStore.add(TENANT, session.log.head)
      return session
    }
    return { saver, sessions, create, lost }
  }
  /** A run of one turn: what its client gets. */
  async function run(saver: SessionSaver, session: Session, texts: readonly [string, string]): Promise<RunEvent[]> {
    async function* events(): AsyncGenerator<RunEvent> {
      session.conversation.append(user(texts[0]))
      session.conversation.append(answer(texts[1]))
      yield TURN_END
      yield DONE
    }
    const seen: RunEvent[] = []
    for await (const event of saver.keep(session, events(), () => {})) seen.push(event)
    return seen
  }
  const typesOf = (events: readonly RunEvent[]) => events.map((event) => ('code' in event ? event.code : event.type))
  const storedOf = async ({ id }: Session) => {
    const loaded = await sessionStore.load(TENANT, id)
    return loaded?.messages.map((each) =>
      'text' in each
        ? each.text
        : 'blocks' in each && each.blocks[0] && 'text' in each.blocks[0] && each.blocks[0].text,
    )
  }

  it('D32: a run ends for its client when its turn is stored, with one document', async () => {
    const { saver, create } = setUp()
    const session = await create()
    expect(typesOf(await run(saver, session, ['one', '1']))).to.deep.equal(['turn_end', 'done'])
    expect(await storedOf(session)).to.deep.equal(['one', '1'])
    await run(saver, session, ['two', '2'])
    expect(await storedOf(session)).to.deep.equal(['one', '1', 'two', '2'])
    expect(writes).to.deep.equal([1, 1])
  })

  it('D32: turns that end together are stored together', async () => {
    const { saver, create } = setUp()
    const all = await Promise.all(Array.from({ length: 20 }, create))
    await Promise.all(all.map((session) => run(saver, session, ['hi', 'ho'])))
    expect(writes.length).to.be.below(4)
    for (const session of all) expect(await storedOf(session)).to.deep.equal(['hi', 'ho'])
  })

  it('D32: a slow write of many sessions is followed by a pause of its length, in which more turns come together', async () => {
    slowMs = 40
    const { saver, create } = setUp()
    const all = await Promise.all(Array.from({ length: 8 }, create))
    for (const text of ['one', 'two', 'three'])
      await Promise.all(all.map((session) => run(saver, session, [text, text])))
    const pauses = begunAt.slice(1).map((at, i) => at - (begunAt[i] ?? 0))
    expect(writes.every((size) => size >= 4)).to.equal(true)
    expect(pauses).not.to.be.empty
    for (const pauseMs of pauses) expect(pauseMs).to.be.at.least(2 * slowMs - 5)
  })

  it('D32: while the store is away a run ends with a warning, and its turn is stored later', async () => {
    const { saver, create } = setUp({ waitMs: 20 })
    const session = await create()
    isAway = true
    expect(typesOf(await run(saver, session, ['one', '1']))).to.deep.equal(['turn_end', 'session_not_stored', 'done'])
    isAway = false
    await saver.settled()
    expect(await storedOf(session)).to.deep.equal(['one', '1'])
  })

  it('D32: a write whose answer did not come is repeated as it was, and what came after it follows', async () => {
    const { saver, create } = setUp({ waitMs: 20 })
    const session = await create()
    const append = sessionStore.append.bind(sessionStore)
    sessionStore.append = async (entries) => {
      await append(entries)
      sessionStore.append = append
      throw storeUnavailable('the answer did not come')
    }
    await run(saver, session, ['one', '1'])
    session.conversation.append(user('two'))
    saver.note(session)
    await saver.settled()
    expect(await storedOf(session)).to.deep.equal(['one', '1', 'two'])
  })

  it('D32: after a compaction the whole history is stored again, and nothing before it counts', async () => {
    const { saver, create } = setUp()
    const session = await create()
    await run(saver, session, ['one', '1'])
    session.conversation.compact([user('summary')])
    await run(saver, session, ['two', '2'])
    expect(await storedOf(session)).to.deep.equal(['summary', 'two', '2'])
  })

  it('D32: a session that is used for longer than its documents live is stored again in time', async () => {
    const { saver, create } = setUp()
    const session = await create()
    const end = now + 2 * lifeOf(IDLE_MS)
    for (let i = 0; now < end; i++, now += lifeOf(IDLE_MS) / 3) {
      await run(saver, session, [`${i}`, 'ok'])
      expect(await storedOf(session)).to.have.length(2 * i + 2)
    }
  })

  it('D32: an owner whose place is taken drops the session, and its client gets worker_lost in place of done', async () => {
    const { saver, create, lost } = setUp()
    const session = await create()
    await run(saver, session, ['one', '1'])
    const { id: sessionId, workspace, log: own } = session
    const entry = { at: new Date(now).toISOString(), facts: session.facts, messages: [] }
    const place = { tenant: TENANT, sessionId, workspace, seq: own?.nextSeq ?? 0, owner: 'b' }
    await sessionStore.append([{ ...place, entry, expiresMs: now + 1e6 }])
    expect(typesOf(await run(saver, session, ['two', '2']))).to.deep.equal(['turn_end', 'worker_lost'])
    expect(lost).to.deep.equal([session])
    expect(typesOf(await run(saver, session, ['three', '3']))).to.deep.equal(['turn_end', 'worker_lost'])
    expect(await storedOf(session)).to.deep.equal(['one', '1'])
  })

  it('D32: a run that ends while its session is being deleted keeps its end', async () => {
    const { saver, create, lost } = setUp()
    const session = await create()
    session.log?.close('deleted')
    expect(typesOf(await run(saver, session, ['one', '1']))).to.deep.equal(['turn_end', DONE.type])
    expect([lost, await storedOf(session)]).to.deep.equal([[], []])
  })

  it('D32: the next owner goes on behind an entry that the one before has sent late, with the whole history', async () => {
    const [first, second] = [setUp({ waitMs: 20 }), setUp()]
    const session = await first.create()
    await run(first.saver, session, ['one', '1'])
    isAway = true
    await run(first.saver, session, ['two', '2'])
    const { waiting: _none, ...state } = session.state
    const moved = second.sessions.adopt(structuredClone(state))
    isAway = false
    await first.saver.settled() // It is not told that the session has moved.
    await run(second.saver, moved, ['three', '3'])
    expect(await storedOf(moved)).to.deep.equal(['one', '1', 'two', '2', 'three', '3'])
    expect(second.lost).to.deep.equal([])
    expect(typesOf(await run(first.saver, session, ['four', '4']))).to.include('worker_lost')
  })
})

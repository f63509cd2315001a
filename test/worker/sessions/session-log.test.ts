import { expect } from 'chai'
import { type LoggedSession, type LogState, SessionLog } from '../../../services/worker/sessions/session-log.ts'
import type { Message } from '../../../shared/agent/providers/port.ts'
import type { SessionFacts } from '../../../shared/agent/sessions/log-documents.ts'
import type { ClientTool } from '../../../shared/agent/tools/client-tools.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'

const BEGUN_MS = Date.parse('2026-11-22T09:30:00.000Z')
const HOUR_MS = 3_600_000
const FACTS: SessionFacts = {
  ...{ title: null, message_count: 0, last_message_at: null, model: null, remembered: [] },
  usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0, turns: 0 },
}

describe('the log of a session, as its owner writes it', () => {
  function setUp(changes: Partial<LogState> = {}) {
    const messages: Message[] = [
      { role: 'user', text: 'one' },
      { role: 'assistant', blocks: [{ type: 'text', text: '1' }] },
    ]
    const session = {
      tenant: DEFAULT_TENANT,
      conversation: { all: messages, compactions: 0, bytes: 100 },
      facts: FACTS,
      memories: ['boats'] as readonly string[],
      clientTools: [] as readonly ClientTool[],
    }
    const head = { session_id: 's1', workspace: 'w1', created_at: new Date(BEGUN_MS).toISOString() }
    const state = { head, nextSeq: 4, baseMs: BEGUN_MS, headMs: BEGUN_MS, remembers: false, owner: 'me', ...changes }
    const log = new SessionLog(state, { ...session, messages: 1, compactions: 0 })
    let now = BEGUN_MS
    const times = { renewalMs: HOUR_MS, lifeMs: 2 * HOUR_MS, now: () => now }
    const take = (of: LoggedSession = session) => log.take(of, times)
    return { log, session, messages, take, times, pass: (ms: number) => void (now += ms) }
  }

  it('an entry holds the messages since the one before, and the memories only when they have changed', () => {
    const { log, take, session, messages } = setUp()
    log.note()
    const { seq, owner, workspace, expiresMs, entry } = take()
    expect({ seq, owner, workspace, expiresMs }).to.deep.equal({
      ...{ seq: 4, owner: 'me', workspace: 'w1', expiresMs: BEGUN_MS + 2 * HOUR_MS },
    })
    expect(entry).to.deep.equal({ at: new Date(BEGUN_MS).toISOString(), facts: FACTS, messages: [messages[1]] })
    log.onStored(2)
    log.note()
    const next = take({ ...session, memories: ['boats', 'ships'] })
    expect([next.seq, next.entry.messages, next.entry.memories]).to.deep.equal([6, [], ['boats', 'ships']])
  })

  it('D45.3: an entry holds the tools of the client only when they have changed, or with the whole history', () => {
    const { log, take, session, pass } = setUp()
    const clientTools = [{ name: 'get_order' }]
    log.note()
    expect(take({ ...session, clientTools }).entry.client_tools).to.deep.equal(clientTools)
    log.onStored(1)
    log.note()
    expect(take({ ...session, clientTools }).entry).to.not.have.property('client_tools')
    log.onStored(1)
    log.note()
    pass(HOUR_MS + 1)
    expect(take({ ...session, clientTools }).entry.client_tools).to.deep.equal(clientTools)
  })

  it('an entry on its way is sent again as it was, whatever has come since', () => {
    const { log, take, session } = setUp()
    log.note()
    const first = take()
    log.note()
    expect(take({ ...session, memories: [] })).to.equal(first)
    log.onStored(1)
    expect(log.isDue).to.equal(true)
    expect(take({ ...session, memories: [] }).entry.memories).to.deep.equal([])
  })

  for (const [why, change] of [
    ['after a compaction', ({ session }: ReturnType<typeof setUp>) => void (session.conversation.compactions = 1)],
    ['when the oldest entry that counts is old', ({ pass }: ReturnType<typeof setUp>) => pass(HOUR_MS + 1)],
    ['after an entry that the store has refused', ({ log }: ReturnType<typeof setUp>) => log.onRefused()],
  ] as const)
    it(`has the whole history ${why}`, () => {
      const parts = setUp()
      change(parts)
      parts.log.note()
      const { entry } = parts.take()
      expect(entry).to.include({ isBase: true, messages: parts.messages })
      parts.log.onStored(1)
      parts.log.note()
      expect(parts.take().entry.isBase).to.equal(undefined)
    })

  for (const [bytes, count] of [
    [100, 50],
    [200 * 4_096, 200],
  ] as const)
    it(`has the whole history after ${count} entries when that is of ${bytes} bytes`, () => {
      const { log, take, session, messages } = setUp({ baseSeq: 3 })
      session.conversation.bytes = bytes
      const write = () => {
        log.note()
        const { entry } = take()
        log.onStored(1)
        return entry
      }
      for (let round = 0; round < 2; round++) {
        const entries = Array.from({ length: count }, write)
        expect(entries.filter(({ isBase }) => isBase)).to.deep.equal([])
        expect(write()).to.include({ isBase: true, messages })
      }
    })

  it('the next owner counts on from the entry that had the whole history', () => {
    const { log, take } = setUp({ isBehind: true })
    take()
    log.onStored(3)
    expect(log.state).to.include({ nextSeq: 7, baseSeq: 4 })
  })

  it('an owner that has taken a session over which lacks messages writes all of them at once', () => {
    const { log, take, messages } = setUp({ isBehind: true })
    expect(log.isDue).to.equal(true)
    expect(take().entry).to.include({ isBase: true, messages })
  })

  it('places that the owner before has taken late are passed, and those of another end the log', () => {
    const { log, take } = setUp({ predecessor: 'before' })
    log.note()
    take()
    expect(log.onTaken('stranger', 1)).to.equal(false)
    expect(log.onTaken(undefined, 1)).to.equal(false)
    expect(log.onTaken('before', 2)).to.equal(true)
    expect(take()).to.deep.include({ seq: 6 }).and.to.nested.include({ 'entry.isBase': true })
  })

  it('who waits is told when all is stored that was noted before, or that it never will be', async () => {
    const { log, take } = setUp()
    expect(await log.stored()).to.equal(true)
    log.note()
    const first = log.stored()
    take()
    log.note()
    const second = log.stored()
    log.onStored(1)
    expect(await first).to.equal(true)
    log.close('moved')
    expect([await second, await log.stored(), log.isDue, log.end]).to.deep.equal([false, false, false, 'moved'])
  })

  it("its state is the next owner's, who knows this one as its predecessor", () => {
    const { log } = setUp()
    expect(log.state).to.deep.include({ nextSeq: 4, predecessor: 'me', isBehind: false, remembers: false })
    log.note()
    expect(log.state.isBehind).to.equal(true)
  })

  it('the head is written again before it is too old, and as soon as a tool is remembered', () => {
    const { log, times, pass } = setUp()
    expect([log.isHeadDue(false, times), log.isHeadDue(true, times)]).to.deep.equal([false, true])
    log.onHeadRenewed(true, times)
    expect(log.isHeadDue(true, times)).to.equal(false)
    pass(HOUR_MS + 1)
    expect(log.isHeadDue(false, times)).to.equal(true)
  })
})

// Tests ../agent/sessions/log.ts and busy-sessions.ts, through the store that writes and reads logs with it.

import { expect } from 'chai'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import type { Message } from '../../shared/agent/providers/port.ts'
import { createBusySessions } from '../../shared/agent/sessions/busy-sessions.ts'
import type { SessionHead } from '../../shared/agent/sessions/load-session.ts'
import {
  type LogEntry,
  type LogWrite,
  SESSION_LOG,
  type SessionFacts,
} from '../../shared/agent/sessions/log-documents.ts'
import { oneShotSessionOf } from '../../shared/agent/sessions/one-shot.ts'
import { createSessionStore, lifeOf, type SessionStore } from '../../shared/agent/sessions/store.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { aroundStore } from '../support/around-store.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import type { OpenStore } from './store.ts'

const NOON = Date.parse('2026-11-24T12:00:00.000Z')
const IDLE_MS = 3_600_000
const RESUME_MS = 30_000
const isoOf = (ms: number) => new Date(ms).toISOString()

const factsOf = (count: number, more: Partial<SessionFacts> = {}): SessionFacts => ({
  ...{ title: 'hi', message_count: count, last_message_at: null, model: 'm', remembered: [] },
  usage: { input_tokens: 1, output_tokens: 2, cost_usd: 0.5, turns: count },
  ...more,
})
const said = (text: string): Message => ({ role: 'user', text })

/** The tests of the stored sessions, which every store passes. */
export function sessionContract(open: OpenStore): void {
  let sessions: SessionStore
  let now = NOON
  let tenants = 0
  const options = { idleMs: IDLE_MS, resumeMs: RESUME_MS, now: () => now }
  const store = useOpened(() => open(COLLECTIONS, () => now))
  before(async () => {
    sessions = createSessionStore(store, options)
  })
  afterEach(() => {
    now = NOON
  })

  const newTenant = () => tenantId(`t_${++tenants}`)
  const headOf = (id: string, at = NOON): SessionHead => ({
    ...{ session_id: id, workspace: `${id}.w${at}`, created_at: isoOf(at) },
  })
  const writer = (tenant: TenantId, { session_id: sessionId, workspace }: SessionHead, owner = 'a') => ({
    write: (seq: number, texts: readonly string[], more: Partial<LogEntry> = {}): LogWrite => ({
      ...{ tenant, sessionId, workspace, seq, owner, expiresMs: now + lifeOf(IDLE_MS) },
      entry: { at: isoOf(now), facts: factsOf(texts.length), messages: texts.map(said), ...more },
    }),
  })
  const textsOf = (messages: readonly Message[] = []) => messages.map((each) => (each as { text: string }).text)

  it('D32: a session is loaded as its owners have written it, in their order', async () => {
    const tenant = newTenant()
    const head = headOf('s')
    expect(await sessions.add(tenant, head)).to.equal(true)
    const [a, b] = [writer(tenant, head), writer(tenant, head, 'b')]
    await sessions.append([a.write(1, ['one \0 😀', 'two'], { memories: ['m'] }), a.write(2, ['three'])])
    await sessions.append([b.write(3, [], { facts: factsOf(3, { title: 'last' }) })])
    const loaded = await sessions.load(tenant, 's')
    expect(textsOf(loaded?.messages)).to.deep.equal(['one \0 😀', 'two', 'three'])
    expect(loaded).to.deep.include({ head, memories: ['m'], nextSeq: 4, baseSeq: 1, baseMs: NOON, headMs: NOON })
    expect(loaded?.facts).to.include({ title: 'last', message_count: 3 })
  })

  it('D32: entries before the whole history do not count', async () => {
    const tenant = newTenant()
    const { write } = writer(tenant, headOf('s'))
    await sessions.add(tenant, headOf('s'))
    await sessions.append([write(1, ['old'], { memories: ['old'] })])
    await sessions.append([write(2, ['summary'], { isBase: true, memories: [] }), write(3, ['new'])])
    const loaded = await sessions.load(tenant, 's')
    expect(textsOf(loaded?.messages)).to.deep.equal(['summary', 'new'])
    expect(loaded).to.deep.include({ memories: [], nextSeq: 4 })
  })

  it('D32.7a: before the whole history, entries tell only of the runs that had ended last', async () => {
    const tenant = newTenant()
    const { write } = writer(tenant, headOf('s'))
    await sessions.add(tenant, headOf('s'))
    const ended = (run_id: string) => ({
      runs: {
        accepted: [{ run_id, started_at: isoOf(now), message: { prompt: run_id } }],
        active: { run_id, state: { hasBegun: true, totals: { turns: 1 } } as never, reserved: 10 },
        ended: [run_id],
      },
    })
    const before = [write(1, ['a'], ended('r1')), write(2, ['b'], ended('r2')), write(3, ['c'], ended('r3'))]
    await sessions.append([...before, write(4, ['a', 'b', 'c'], { isBase: true, runs: { ended_from: 2 } })])
    await sessions.append([write(5, ['d'], ended('r5'))])
    const loaded = await sessions.load(tenant, 's')
    expect(textsOf(loaded?.messages)).to.deep.equal(['a', 'b', 'c', 'd'])
    expect(loaded?.runs.ended.map(({ runId, fromSeq }) => [runId, fromSeq])).to.deep.equal([
      ['r2', 2],
      ['r3', 3],
      ['r5', 5],
    ])
    expect(loaded).to.include({ baseSeq: 4, nextSeq: 6 })
  })

  it('D32.7a: of the runs that have ended, those are told that may still be asked for, each from its beginning', async () => {
    const tenant = newTenant()
    const { write } = writer(tenant, headOf('s'))
    await sessions.add(tenant, headOf('s'))
    const accepted = (run_id: string) => ({ run_id, started_at: isoOf(NOON), message: { prompt: run_id } })
    const active = (run_id: string) => ({ run_id, state: { totals: { turns: 1 } } as never, reserved: 10 })
    const old = { runs: { accepted: [accepted('old')], active: active('old'), ended: ['old'] } }
    await sessions.append([write(1, ['a'], old), write(2, ['b'], { runs: { accepted: [accepted('long')] } })])
    await sessions.append([write(3, ['c'], { runs: { active: active('long') } })])
    now += RESUME_MS + 1
    await sessions.append([write(4, ['d'], { runs: { active: active('long'), ended: ['long'] } })])
    const endedRuns = async () => (await sessions.load(tenant, 's'))?.runs.ended.map((run) => [run.runId, run.fromSeq])
    expect(await endedRuns(), 'the whole log').to.deep.equal([['long', 2]])
    await sessions.append([write(5, ['all'], { isBase: true, runs: { ended_from: 1 } })])
    expect(await endedRuns()).to.deep.equal([['long', 2]])
    expect(textsOf((await sessions.load(tenant, 's'))?.messages)).to.deep.equal(['all'])
  })

  it('runs that nobody may ask for any more are not read: a page of the log is enough', async () => {
    const tenant = newTenant()
    const { write } = writer(tenant, headOf('s'))
    await sessions.add(tenant, headOf('s'))
    await sessions.append(Array.from({ length: 120 }, (_, i) => write(i + 1, ['a'])))
    now += RESUME_MS + 1
    await sessions.append([write(121, ['all'], { isBase: true, runs: { ended_from: 1 } })])
    let pages = 0
    const counted = aroundStore(store, (method, act) => {
      if (method === 'page') pages++
      return act()
    })
    const loaded = await createSessionStore(counted, options).load(tenant, 's')
    expect([textsOf(loaded?.messages), pages]).to.deep.equal([['all'], 1])
  })

  it('D32.7c: a one-shot run is stored by its log alone, and is gone when that is deleted', async () => {
    const [tenant, other] = [newTenant(), newTenant()]
    const id = oneShotSessionOf('run_1')
    const head = { session_id: id, workspace: 'run_1', created_at: isoOf(NOON) }
    expect([await sessions.load(tenant, id), await sessions.find(tenant, id)]).to.deep.equal([undefined, undefined])
    for (const each of [tenant, other]) await sessions.append([writer(each, head).write(1, ['one'])])
    await sessions.append([writer(tenant, head).write(2, ['two'])])
    const loaded = await sessions.load(tenant, id)
    expect(loaded?.head).to.deep.include({ session_id: id, workspace: 'run_1' })
    expect(textsOf(loaded?.messages)).to.deep.equal(['one', 'two'])
    expect((await sessions.page(tenant, { limit: 9 })).sessions).to.deep.equal([])
    await sessions.deleteLogs([{ tenant, workspace: 'run_1', last: 2 }])
    expect([await sessions.load(tenant, id), await sessions.find(tenant, id)]).to.deep.equal([undefined, undefined])
    expect(await sessions.find(other, id)).to.include({ session_id: id })
  })

  it('D32.7c: places of a one-shot run are taken once, too, and a long entry is divided', async () => {
    const tenant = newTenant()
    const head = { session_id: oneShotSessionOf('run_1'), workspace: 'run_1', created_at: isoOf(NOON) }
    const [a, b] = [writer(tenant, head), writer(tenant, head, 'b')]
    const long = `${'"é😀'.repeat(600_000)}.`
    expect(await sessions.append([a.write(1, ['x']), a.write(2, [long])])).to.deep.equal([
      { places: 1, isOwn: true },
      { places: 2, isOwn: true },
    ])
    expect((await sessions.append([a.write(1, ['x']), b.write(2, ['y'])])).map(({ isOwn }) => isOwn)).to.deep.equal([
      true,
      false,
    ])
    expect(await sessions.ownerAt(tenant, head, 3)).to.equal('a')
    const loaded = await sessions.load(tenant, head.session_id)
    expect([textsOf(loaded?.messages), loaded?.nextSeq]).to.deep.equal([['x', long], 4])
  })

  it('D32.8: the first entry of a one-shot run marks the process that has it, beside the marks of sessions', async () => {
    const busy = createBusySessions(store)
    const [tenant, other] = [newTenant(), newTenant()]
    const headOfRun = (runId: string) => ({ ...headOf(oneShotSessionOf(runId)), workspace: runId })
    const begin = (of: TenantId, runId: string, busyAt: string) =>
      sessions.append([{ ...writer(of, headOfRun(runId)).write(1, ['x']), busyAt }])
    await begin(tenant, 'run_1', '7')
    await begin(other, 'run_1', '7')
    await begin(tenant, 'run_2', '8')
    await sessions.append([writer(tenant, headOfRun('run_1')).write(2, ['y'])])
    await busy.add({ id: 'm1', owner: '7', tenant, session_id: 's' })
    await busy.add({ id: 'm2', owner: '6', tenant, session_id: 's2' })
    const ownersFrom = async (after?: string): Promise<string[]> => {
      const owner = await busy.nextOwner(after)
      return owner === undefined ? [] : [owner, ...(await ownersFrom(owner))]
    }
    expect(await ownersFrom()).to.deep.equal(['6', '7', '8'])
    const marks = await busy.of('7', 9)
    const namesOf = (all: typeof marks) => all.map((each) => `${each.tenant} ${each.session_id}`).toSorted()
    const runs = [`${tenant} @run_1`, `${other} @run_1`]
    expect(namesOf(marks)).to.deep.equal([...runs, `${tenant} s`].toSorted())
    for (const limit of [1, 2]) expect(await busy.of('7', limit)).to.deep.equal(marks.slice(0, limit))
    await busy.delete(marks.flatMap(({ id, tenant: of }) => (of === other ? [] : [id])))
    expect(namesOf(await busy.of('7', 9))).to.deep.equal([runs[1]])
    expect(textsOf((await sessions.load(tenant, '@run_1'))?.messages), 'its log stays').to.deep.equal(['x', 'y'])
    await sessions.deleteLogs([{ tenant: other, workspace: 'run_1', last: 1 }])
    expect(await busy.of('7', 9)).to.deep.equal([])
  })

  it('D32: a place of a log is taken once: another owner is refused, and a repeated write is not', async () => {
    const tenant = newTenant()
    const [a, b] = [writer(tenant, headOf('s')), writer(tenant, headOf('s'), 'b')]
    await sessions.add(tenant, headOf('s'))
    expect(await sessions.append([a.write(1, ['x'])])).to.deep.equal([{ places: 1, isOwn: true }])
    const others = [b.write(1, ['y']), writer(tenant, headOf('other'), 'b').write(1, ['z'])]
    expect((await sessions.append(others)).map(({ isOwn }) => isOwn)).to.deep.equal([false, true])
    expect(await sessions.append([a.write(1, ['x'])]), 'again').to.deep.equal([{ places: 1, isOwn: true }])
    expect(await sessions.ownerAt(tenant, headOf('s'), 1)).to.equal('a')
    expect(textsOf((await sessions.load(tenant, 's'))?.messages)).to.deep.equal(['x'])
  })

  it('D32: an entry that is longer than a document is divided; one without its last piece does not count', async () => {
    const tenant = newTenant()
    const { write } = writer(tenant, headOf('s'))
    await sessions.add(tenant, headOf('s'))
    const long = `${'"é😀'.repeat(1_200_000)}.`
    const [{ places } = { places: 0 }] = await sessions.append([write(1, [long])])
    expect(places).to.equal(3)
    const cut = {
      workspace: headOf('s').workspace,
      seq: 4,
      owner: 'c',
      expires_ms: now + 1e6,
      at: 0,
      left: 1,
      piece: '{',
    }
    await store.collection(SESSION_LOG).insert(tenant, cut)
    await sessions.append([write(5, ['next'])])
    expect(textsOf((await sessions.load(tenant, 's'))?.messages)).to.deep.equal([long, 'next'])
  })

  it('D32: an id has one session; one that was idle too long, or may be replaced, gives way with its log', async () => {
    const tenant = newTenant()
    const [first, second, third] = [headOf('s'), headOf('s', NOON + 1), headOf('s', NOON + IDLE_MS + 1)]
    await sessions.add(tenant, first)
    await sessions.append([writer(tenant, first).write(1, ['x'])])
    expect(await sessions.add(tenant, first), 'again').to.equal(true)
    expect(await sessions.add(tenant, second)).to.equal(false)
    expect(await sessions.add(tenant, second, async () => true)).to.equal(true)
    expect(await sessions.ownerAt(tenant, first, 1)).to.equal(undefined)
    now = NOON + IDLE_MS + 1
    expect(await sessions.add(tenant, third)).to.equal(true)
    expect((await sessions.load(tenant, 's'))?.head).to.deep.equal(third)
  })

  it('D32: a session that was not used for the idle time is not found, though its documents are still there', async () => {
    const tenant = newTenant()
    await sessions.add(tenant, headOf('s'))
    now = NOON + IDLE_MS - 1
    await sessions.append([writer(tenant, headOf('s')).write(1, ['x'])])
    now = NOON + 2 * IDLE_MS - 2
    expect((await sessions.load(tenant, 's'))?.messages).to.have.length(1)
    expect(await sessions.find(tenant, 's')).to.include({ session_id: 's', active_run_id: null, queued: 0 })
    now = NOON + 2 * IDLE_MS
    expect(await sessions.load(tenant, 's')).to.equal(undefined)
    expect(await sessions.find(tenant, 's')).to.equal(undefined)
    expect((await sessions.page(tenant, { limit: 10 })).sessions).to.deep.equal([])
  })

  it('D32: a removed session is gone with its log, and one that was created after it under the same id stays', async () => {
    const tenant = newTenant()
    const [first, second] = [headOf('s'), headOf('s', NOON + 1)]
    await sessions.add(tenant, first)
    await sessions.append([1, 2, 3].map((seq) => writer(tenant, first).write(seq, ['x'])))
    await sessions.remove(tenant, first)
    expect(await sessions.find(tenant, 's')).to.equal(undefined)
    expect(await sessions.ownerAt(tenant, first, 2)).to.equal(undefined)
    await sessions.add(tenant, second)
    await sessions.remove(tenant, first)
    expect((await sessions.load(tenant, 's'))?.head).to.deep.equal(second)
  })

  it('D36.4: a creation that is taken back is not stored, though the store carries it out later', async () => {
    const tenant = newTenant()
    const [refused, again] = [headOf('s'), headOf('s', NOON + 1)]
    const seed = writer(tenant, refused).write(1, ['seed'])
    await sessions.takeBack(tenant, refused, 'a')
    expect(await sessions.add(tenant, refused)).to.equal(true)
    await sessions.append([seed])
    expect([await sessions.find(tenant, 's'), await sessions.load(tenant, 's')]).to.deep.equal([undefined, undefined])
    expect((await sessions.page(tenant, { limit: 9 })).sessions).to.deep.equal([])
    expect(await sessions.add(tenant, again), 'its id is free').to.equal(true)
    await sessions.takeBack(tenant, refused, 'a')
    expect((await sessions.load(tenant, 's'))?.head).to.deep.equal(again)
  })

  it('D36.4: of a creation without an entry it is not known for a moment whether it was refused', async () => {
    const tenant = newTenant()
    const isLeft = (id: string) => sessions.isLeft(tenant, id).catch(({ status }: { status: number }) => status)
    for (const id of ['s', 'used', 'refused']) await sessions.add(tenant, headOf(id))
    await sessions.append([writer(tenant, headOf('used')).write(1, ['x'])])
    expect([await isLeft('s'), await isLeft('used'), await isLeft('unknown')]).to.deep.equal([503, true, false])
    await sessions.takeBack(tenant, headOf('refused'), 'a')
    expect(await isLeft('refused')).to.equal(false)
    now = NOON + 5_000
    expect(await isLeft('s')).to.equal(true)
    now = NOON + 2 * IDLE_MS
    expect(await isLeft('used')).to.equal(false)
  })

  it('D36.4: what was stored of a creation that is taken back is deleted, unless another owner goes on with the session', async () => {
    const tenant = newTenant()
    for (const id of ['s', 'used']) {
      await sessions.add(tenant, headOf(id))
      await sessions.append([writer(tenant, headOf(id)).write(1, ['seed'])])
    }
    await sessions.append([writer(tenant, headOf('used'), 'b').write(2, ['message'])])
    for (const id of ['s', 'used', 's']) await sessions.takeBack(tenant, headOf(id), 'a')
    expect(await sessions.find(tenant, 's')).to.equal(undefined)
    expect(await sessions.ownerAt(tenant, headOf('s'), 1)).to.not.equal('a')
    expect(textsOf((await sessions.load(tenant, 'used'))?.messages)).to.deep.equal(['seed', 'message'])
  })

  it('D32: pages hold the sessions created last first, each once, and only those of the tenant', async () => {
    const [tenant, other] = [newTenant(), newTenant()]
    for (const i of [1, 2, 3, 4, 5]) await sessions.add(tenant, headOf(`s${i}`, NOON - IDLE_MS + 1_000 * i))
    await sessions.add(other, headOf('s9'))
    now = NOON + 2_500 // Two of them are idle too long by now.
    const first = await sessions.page(tenant, { limit: 2 })
    expect(first.sessions.map(({ session_id }) => session_id)).to.deep.equal(['s5', 's4'])
    const second = await sessions.page(tenant, { limit: 2, after: first.next })
    expect(second.sessions.map(({ session_id }) => session_id)).to.deep.equal(['s3'])
    expect(second.next).to.equal(undefined)
    expect(await sessions.find(other, 's5')).to.equal(undefined)
    expect(await sessions.load(other, 's5')).to.equal(undefined)
  })

  it('D32: those that remember tools are listed by themselves', async () => {
    const tenant = newTenant()
    for (const id of ['s1', 's2']) await sessions.add(tenant, headOf(id))
    const remembered = [{ tool_name: 'Bash', remembered_at: isoOf(NOON) }]
    await sessions.append([writer(tenant, headOf('s2')).write(1, [], { facts: factsOf(0, { remembered }) })])
    await sessions.renew(tenant, headOf('s2'), true)
    await sessions.renew(tenant, headOf('s1', NOON + 1), true) // Another session of the id: it does not count.
    const { sessions: found } = await sessions.page(tenant, { limit: 10, remembers: true })
    expect(found.map(({ session_id, remembered: tools }) => [session_id, tools])).to.deep.equal([['s2', remembered]])
  })

  it('D32: a renewed session outlives the documents of its first day', async () => {
    const tenant = newTenant()
    await sessions.add(tenant, headOf('s'))
    for (let passed = 0, seq = 1; passed < 3 * lifeOf(IDLE_MS); passed += IDLE_MS / 2, seq++) {
      now = NOON + passed
      await sessions.renew(tenant, headOf('s'), false)
      await sessions.append([writer(tenant, headOf('s')).write(seq, [`${seq}`], { isBase: true })])
    }
    expect((await sessions.load(tenant, 's'))?.messages).to.have.length(1)
  })
}

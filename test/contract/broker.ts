import { expect } from 'chai'
import type { Broker, OnNamed, OpenedRun } from '../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../shared/cluster/commands/runs.ts'
import type { SessionPage } from '../../shared/cluster/commands/sessions.ts'
import type { PermissionSummary } from '../../shared/cluster/permissions/store.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { eventsOf, idsOf, textOf } from '../support/broker-answers.ts'
import { useOpened } from '../support/fixture.ts'
import { tenantId } from '../support/tenant.ts'
import { until } from '../support/until.ts'

/** The brokers of several gateways, connected to workers that run the demo model (test/support/demo-worker.ts). */
export type BrokerSetup = { brokers: readonly [Broker, ...Broker[]]; close(): Promise<void> }

const TENANT = DEFAULT_TENANT
const OTHER = tenantId('other')

async function statusOfError(act: Promise<unknown>): Promise<number> {
  const cause = await act.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (cause instanceof AppError) return cause.status
  throw cause ?? new Error('the call was not refused')
}

/** Reads until the text holds `pattern`, and leaves the stream open. */
async function readUntil(frames: AsyncIterator<{ text: string | Uint8Array }>, pattern: RegExp): Promise<string> {
  let text = ''
  while (!pattern.test(text)) {
    const { done, value } = await frames.next()
    if (done) throw new Error(`the stream ended without ${pattern}: ${text}`)
    text += Buffer.from(value.text).toString()
  }
  return text
}

/** The contract of every broker, through whichever gateway a call is made. */
export function brokerContract(open: () => Promise<BrokerSetup>): void {
  let first: Broker
  let other: Broker
  const setup = useOpened(open)
  before(async () => {
    first = setup.brokers[0]
    other = setup.brokers.at(-1) ?? first
  })

  it('a run’s frames come complete and in order, and end with the terminal frame', async () => {
    const { runId, frames } = await first.startRun(TENANT, { prompt: '/say one\n/say two' })
    const text = await textOf(frames)
    expect(idsOf(text)).to.deep.equal(idsOf(text).map((_, i) => i + 1))
    expect(eventsOf(text).at(-1)).to.equal('done')
    expect(await other.getRun(TENANT, runId)).to.include({ status: 'done', event_count: idsOf(text).length })
  })

  it('D25a: a run and a message are named before a worker is asked, and not started when that fails', async () => {
    const { session_id: session } = await first.createSession(TENANT)
    const starts: ((onNamed: OnNamed) => Promise<OpenedRun>)[] = [
      (onNamed) => first.startRun(TENANT, { prompt: '/say x' }, onNamed),
      (onNamed) => first.sendMessage(TENANT, session, { prompt: '/say x' }, onNamed),
    ]
    for (const start of starts) {
      const named: string[] = []
      const statuses: unknown[] = []
      const { runId, frames } = await start(async (id) => {
        named.push(id)
        statuses.push(await statusOfError(other.getRun(TENANT, id)))
      })
      await textOf(frames)
      expect([named, statuses]).to.deep.equal([[runId], [404]])
      const refused: string[] = []
      const refuse = async (id: string) => {
        refused.push(id)
        throw new AppError('unavailable', 'the store is away')
      }
      expect(await statusOfError(start(refuse))).to.equal(503)
      for (const id of refused) expect(await statusOfError(other.getRun(TENANT, id))).to.equal(404)
    }
  })

  it('a run that is faster than its reader waits, and the reader gets every event', async () => {
    const prompt = `/say ${'word '.repeat(20_000)}`
    const { runId, frames } = await first.startRun(TENANT, { prompt })
    let text = ''
    for await (const chunk of frames) {
      text += String(chunk.text)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const ids = idsOf(text)
    expect(eventsOf(text).at(-1)).to.equal('done')
    expect(ids.length).to.be.above(20_000)
    expect(ids.every((id, i) => id === i + 1)).to.equal(true)
    expect(await other.getRun(TENANT, runId)).to.include({ event_count: ids.length })
  })

  it('many runs at once each get their own frames', async () => {
    const opened = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (i % 2 ? first : other).startRun(TENANT, { prompt: `/say number ${i}!` })),
    )
    const texts = await Promise.all(opened.map(({ frames }) => textOf(frames)))
    texts.forEach((text, i) => {
      expect(text).to.include(`number ${i}!"`)
      expect(idsOf(text)).to.deep.equal(idsOf(text).map((_, at) => at + 1))
    })
  })

  it('D4.5a: a run is followed from any frame, live and after its end, through any gateway', async () => {
    const { runId, frames } = await first.startRun(TENANT, { prompt: '/say one\n/tool Ask {}' })
    const reading = frames[Symbol.asyncIterator]()
    const start = await readUntil(reading, /permission_request/)
    const live = textOf(await other.followRun(TENANT, runId, idsOf(start).at(-1) ?? 0))
    await first.cancelRun(TENANT, runId)
    const rest = await live
    expect(eventsOf(rest)).to.deep.equal(['permission_resolved', 'error'])
    expect(await textOf(await other.followRun(TENANT, runId, 0))).to.equal(start + rest)
    expect(await readUntil(reading, /cancelled/)).to.equal(rest)
  })

  it('D4.5c: the stream of an ended run opens and ends at once after the last id, and an id above it counts as the last', async () => {
    const { runId, frames } = await first.startRun(TENANT, { prompt: '/say one' })
    const last = idsOf(await textOf(frames)).at(-1) ?? 0
    for (const after of [last, last + 1, 4_294_967_295])
      for (const broker of [first, other])
        expect(await textOf(await broker.followRun(TENANT, runId, after))).to.equal('')
  })

  it('D4.5c: an id above the last event of a live run counts as the last: the next event and the end come', async () => {
    const { runId, frames } = await first.startRun(TENANT, { prompt: '/say one\n/tool Ask {}' })
    const reading = frames[Symbol.asyncIterator]()
    const last = idsOf(await readUntil(reading, /permission_request/)).at(-1) ?? 0
    const followed = await Promise.all([last + 1, 4_294_967_295].map((after) => other.followRun(TENANT, runId, after)))
    const texts = followed.map(textOf)
    await first.cancelRun(TENANT, runId)
    for (const text of await Promise.all(texts)) {
      expect(idsOf(text)).to.deep.equal([last + 1, last + 2])
      expect(eventsOf(text)).to.deep.equal(['permission_resolved', 'error'])
    }
    expect(await readUntil(reading, /cancelled/)).to.equal(await texts[0])
  })

  it('D4.6: a session’s messages continue one conversation, through whichever gateway they come', async () => {
    const { session_id: session } = await first.createSession(TENANT)
    await textOf((await first.sendMessage(TENANT, session, { prompt: '/say a' })).frames)
    await textOf((await other.sendMessage(TENANT, session, { prompt: '/say b' })).frames)
    expect(await first.getSession(TENANT, session)).to.include({ session_id: session, message_count: 4 })
  })

  it('D23.1: sessions are listed through every gateway, renamed through one, and gone when they are deleted', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push((await first.createSession(TENANT)).session_id)
    expect(await first.renameSession(TENANT, ids[0] ?? '', 'Boats')).to.include({ session_id: ids[0], title: 'Boats' })
    for (const broker of setup.brokers) {
      const listed: string[] = []
      let cursor: string | null = null
      do {
        const page: SessionPage = await broker.listSessions(TENANT, { limit: 2, ...(cursor !== null && { cursor }) })
        expect(page.sessions.length).to.be.at.most(2)
        listed.push(...page.sessions.map(({ session_id }) => session_id))
        cursor = page.next_cursor
      } while (cursor !== null)
      expect(listed.filter((id) => ids.includes(id))).to.have.members(ids)
      expect(new Set(listed).size).to.equal(listed.length)
      expect(await broker.getSession(TENANT, ids[0] ?? '')).to.include({ title: 'Boats' })
      expect((await broker.listSessions(OTHER, { limit: 10 })).sessions).to.deep.equal([])
    }
    for (const id of ids) await other.deleteSession(TENANT, id)
    const { sessions } = await first.listSessions(TENANT, { limit: 200 })
    expect(sessions.filter(({ session_id }) => ids.includes(session_id))).to.deep.equal([])
  })

  it('D23.3, D23.4: a session goes on from the history that it was created with, which every gateway lists', async () => {
    const { session_id: session } = await first.createSession(TENANT, undefined, [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'hello' },
    ])
    const { runId, frames } = await other.sendMessage(TENANT, session, { prompt: '/say on' })
    await textOf(frames)
    for (const broker of setup.brokers) {
      const { messages } = await broker.listMessages(TENANT, session, { limit: 10 })
      expect(messages.map(({ role, run_id }) => [role, run_id])).to.deep.equal([
        ['user', null],
        ['assistant', null],
        ['user', runId],
        ['assistant', runId],
      ])
      expect(await broker.getSession(TENANT, session)).to.include({
        message_count: 4,
        title: 'hi',
        active_run_id: null,
      })
    }
    const wrong = first.createSession(TENANT, newId('sess'), [{ role: 'assistant', content: 'hello' }])
    expect(await statusOfError(wrong)).to.equal(400)
  })

  it('when a session is created many times at once one call succeeds, the others are 409', async () => {
    const id = newId('sess')
    const statuses = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 ? first : other).createSession(TENANT, id).then(
          () => 201,
          (cause: AppError) => cause.status,
        ),
      ),
    )
    expect(statuses.filter((status) => status === 201)).to.have.length(1)
    expect(statuses.filter((status) => status === 409)).to.have.length(19)
  })

  it('api.md "Permission request": a request from a stream of one gateway is answered through another gateway, once', async () => {
    const { runId, frames } = await first.startRun(TENANT, { prompt: '/tool Ask {}' })
    const reading = frames[Symbol.asyncIterator]()
    const start = await readUntil(reading, /event: permission_request\ndata: .*\n/)
    const [id = ''] = /perm_[0-9a-f]{32}/.exec(start) ?? []
    expect(await other.getRun(TENANT, runId)).to.include({ status: 'waiting' })
    await other.replyPermission(TENANT, runId, id, { allow: true })
    expect(await statusOfError(first.replyPermission(TENANT, runId, id, { allow: false }))).to.equal(409)
    expect(await readUntil(reading, /event: done/)).to.include('it ran')
  })

  it('D4.12: a pending request is listed through any gateway until it is decided, for its own tenant only', async () => {
    const { session_id: session } = await first.createSession(TENANT)
    const oneShot = await first.startRun(TENANT, { prompt: '/tool Ask {"n":1}' })
    await readUntil(oneShot.frames[Symbol.asyncIterator](), /permission_request/)
    const message = await other.sendMessage(TENANT, session, { prompt: '/tool Ask {"n":2}' })
    await readUntil(message.frames[Symbol.asyncIterator](), /permission_request/)
    const listOf = async (broker: Broker, tenant = TENANT) =>
      (await broker.listPermissions(tenant, { limit: 10 })).permissions
    for (const broker of setup.brokers) {
      expect((await listOf(broker)).map(({ session_id, run_id, input }) => [session_id, run_id, input])).to.deep.equal([
        [oneShot.runId, oneShot.runId, { n: 1 }],
        [session, message.runId, { n: 2 }],
      ])
      expect(await listOf(broker, OTHER)).to.deep.equal([])
    }
    const [{ id }] = (await listOf(other)) as [PermissionSummary]
    await other.replyPermission(TENANT, oneShot.runId, id, { allow: false })
    expect((await listOf(first)).map(({ run_id }) => run_id)).to.deep.equal([message.runId])
    await first.deleteSession(TENANT, session)
    await until(async () => (await listOf(other)).length === 0, {
      what: 'the requests of the deleted session to leave the list',
    })
  })

  it('D4.7: deleting a session ends its streams, and every gateway answers 404 for it', async () => {
    const { session_id: session } = await first.createSession(TENANT)
    const { frames } = await first.sendMessage(TENANT, session, { prompt: '/tool Ask {}' })
    const reading = frames[Symbol.asyncIterator]()
    await readUntil(reading, /permission_request/)
    await other.deleteSession(TENANT, session)
    expect(await readUntil(reading, /event: error/)).to.include('session_deleted')
    for (const broker of setup.brokers) expect(await statusOfError(broker.getSession(TENANT, session))).to.equal(404)
    expect(await first.createSession(TENANT, session)).to.include({ session_id: session, message_count: 0 })
  })

  it('api.md "Authentication" 8: every call for another tenant’s session or run is 404', async () => {
    const { session_id: session } = await first.createSession(TENANT)
    const { runId, frames } = await first.startRun(TENANT, { prompt: '/say x' })
    await textOf(frames)
    for (const act of [
      () => other.getSession(OTHER, session),
      () => other.deleteSession(OTHER, session),
      () => other.sendMessage(OTHER, session, { prompt: 'x' }),
      () => other.listMessages(OTHER, session, { limit: 1 }),
      () => other.renameSession(OTHER, session, 'mine'),
      () => other.getRun(OTHER, runId),
      () => other.followRun(OTHER, runId, 0),
      () => other.cancelRun(OTHER, runId),
      () => other.branchOf(OTHER, session, runId),
      () => other.listFiles(OTHER, session, { limit: 1 }),
      () => other.readFile(OTHER, runId, { path: 'a', from: 0 }),
      () => other.steerRun(OTHER, runId, { id: 's', text: 'x' }),
    ]) {
      expect(await statusOfError(act())).to.equal(404)
    }
    expect((await other.listRuns(OTHER, { limit: 10 })).runs).to.deep.equal([])
  })

  it('D4.5g: the list has every run of the tenant once, newest first, page by page', async () => {
    const made = new Set<string>()
    for (let i = 0; i < 7; i++) {
      const { runId, frames } = await (i % 2 ? first : other).startRun(TENANT, { prompt: '/say x' })
      await textOf(frames)
      made.add(runId)
    }
    const seen: RunSummary[] = []
    let cursor: string | null = null
    do {
      const page = await other.listRuns(TENANT, { limit: 3, status: 'done', ...(cursor !== null && { cursor }) })
      seen.push(...page.runs)
      cursor = page.next_cursor
    } while (cursor !== null)
    const times = seen.map(({ started_at }) => started_at)
    expect(times).to.deep.equal(times.toSorted().reverse())
    expect(new Set(seen.map(({ run_id }) => run_id)).size).to.equal(seen.length)
    for (const runId of made) expect(seen.map(({ run_id }) => run_id)).to.include(runId)
  })

  it('unknown runs and sessions are 404', async () => {
    const run = newId('run')
    expect(await statusOfError(first.getRun(TENANT, run))).to.equal(404)
    expect(await statusOfError(first.followRun(TENANT, run, 0))).to.equal(404)
    expect(await statusOfError(first.sendMessage(TENANT, 'nobody', { prompt: 'x' }))).to.equal(404)
    expect(await statusOfError(first.replyPermission(TENANT, run, newId('perm'), { allow: true }))).to.equal(404)
  })
}

import { expect } from 'chai'
import { createSessionStore, type SessionStore } from '../../shared/agent/sessions/store.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { MemoryCluster } from '../../shared/cluster/memory-cluster.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { withStoredSessions } from '../../shared/work/sessions/stored-lists.ts'
import { eventsOf, statusOf, textOf } from '../support/broker-answers.ts'
import { createMemoryRelay } from '../support/relay.ts'
import { tenantId } from '../support/tenant.ts'
import { useTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'

const TENANT = DEFAULT_TENANT
const OTHER = tenantId('t_other')
const IDLE_MS = 60_000
const RESUME_MS = 30_000

describe('sessions that are stored', () => {
  const opened = useTestStore()
  let sessionStore: SessionStore
  let cluster = new MemoryCluster()
  let relay = createMemoryRelay(cluster)
  before(() => {
    sessionStore = createSessionStore(opened.store, { idleMs: IDLE_MS, resumeMs: RESUME_MS })
  })
  afterEach(async () => {
    await relay.close()
    restartCluster()
  })

  /** The members' connection loses everything, as a Redis that was flushed. */
  function restartCluster() {
    cluster = new MemoryCluster()
    relay = createMemoryRelay(cluster)
  }
  const openWorker = () =>
    relay.worker({
      deps: { keptSessions: { store: sessionStore, marks: undefined } },
      limits: { sessionIdleMs: IDLE_MS },
    })
  async function openBroker(): Promise<Broker> {
    const isStored = async ({ tenant, id }: { tenant: TenantId; id: string }) =>
      (await sessionStore.find(tenant, id)) !== undefined
    const { broker } = await relay.gateway({ isStored })
    return { ...broker, ...withStoredSessions(broker, sessionStore) }
  }
  const say = async (broker: Broker, id: string, prompt: string) =>
    textOf((await broker.sendMessage(TENANT, id, { prompt })).frames)
  const create = async (broker: Broker) => (await broker.createSession(TENANT)).session_id
  /** Sends messages until none is refused because the death of the worker is not noticed yet. */
  const sayAfterDeath = (broker: Broker, id: string, prompt: string) =>
    until(
      () =>
        say(broker, id, prompt).catch((cause: unknown) => cause instanceof Error && /worker/.test(cause.message) && ''),
      { what: 'another worker to take the session over' },
    )
  /** Without the notice that the demo model's first answer begins with. */
  async function textsOf(broker: Broker, id: string): Promise<string[]> {
    const { messages } = await broker.listMessages(TENANT, id, { limit: 100 })
    const texts = messages.flatMap(({ blocks }) => blocks.map((block) => ('text' in block ? block.text : block.type)))
    return texts.filter((text) => !text.startsWith('This is the built-in demo model'))
  }

  it('D32: a session whose worker died goes on at another, with its history, its title and its usage', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const id = await create(broker)
    await say(broker, id, '/say one')
    await broker.renameSession(TENANT, id, 'Boats')
    const before = await broker.getSession(TENANT, id)
    const second = await openWorker()
    await relay.kill(first)
    expect(eventsOf(await sayAfterDeath(broker, id, '/say two')).at(-1)).to.equal('done')
    expect(await textsOf(broker, id)).to.deep.equal(['/say one', 'one', '/say two', 'two'])
    const { title, created_at, usage } = await broker.getSession(TENANT, id)
    expect({ title, created_at }).to.deep.equal({ title: 'Boats', created_at: before.created_at })
    expect(usage.turns).to.equal(2)
    expect([...second.worker.sessions()].map((session) => session.id)).to.deep.equal([id])
  })

  it('D32: the stream of a message that was cut off says that the session is kept; that of another run does not', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const id = await create(broker)
    const message = await broker.sendMessage(TENANT, id, { prompt: '/say one\n/tool Ask {}' })
    const run = await broker.startRun(TENANT, { prompt: '/tool Ask {}' })
    await until(async () => (await broker.listPermissions(TENANT, { limit: 9 })).permissions.length === 2, {
      what: 'both to ask',
    })
    const followed = await broker.followRun(TENANT, message.runId, 0)
    await broker.getRun(TENANT, message.runId)
    await relay.kill(first)
    for (const text of [await textOf(message.frames), await textOf(followed)]) {
      expect(text).to.match(/event: error\ndata: .*"code":"worker_lost".*"session_kept":true\}\n\n$/)
      expect(text).to.contain('Send the message again to the same session.')
    }
    expect(await textOf(run.frames))
      .to.contain('worker_lost')
      .and.not.contain('session_kept')
  })

  it('D32: after the members and everything that connects them are gone, the sessions are listed and go on', async () => {
    await openWorker()
    const before = await openBroker()
    const [one, two] = [await create(before), await create(before)]
    await say(before, one, '/say one')
    await relay.close()
    restartCluster()
    await openWorker()
    const broker = await openBroker()
    const list = async (of: TenantId) =>
      (await broker.listSessions(of, { limit: 2 })).sessions.map((session) => session.session_id)
    expect(await list(TENANT)).to.have.members([one, two])
    await say(broker, one, '/say two')
    expect(await list(TENANT), 'each once').to.have.members([one, two])
    expect(await textsOf(broker, one)).to.deep.equal(['/say one', 'one', '/say two', 'two'])
    expect(await broker.getSession(TENANT, two)).to.include({ message_count: 0 })
    expect(await list(OTHER)).to.deep.equal([])
    expect(await statusOf(broker.getSession(OTHER, one))).to.equal(404)
    expect(await statusOf(broker.createSession(TENANT, one))).to.equal(409)
    expect(await broker.createSession(OTHER, one)).to.include({ message_count: 0 })
  })

  it('D32: a deleted session stays deleted, and another one may have its id', async () => {
    await openWorker()
    const before = await openBroker()
    const [one, two] = [await create(before), await create(before)]
    await say(before, one, '/say one')
    await before.deleteSession(TENANT, one)
    await relay.close()
    restartCluster()
    await openWorker()
    const broker = await openBroker()
    expect(await statusOf(broker.getSession(TENANT, one))).to.equal(404)
    await broker.deleteSession(TENANT, two) // It is in no worker's memory.
    expect(await statusOf(broker.getSession(TENANT, two))).to.equal(404)
    await broker.createSession(TENANT, one)
    expect(await textsOf(broker, one)).to.deep.equal([])
  })

  it('D32: of requests that come at once, one opens the session, and all are answered', async () => {
    await openWorker()
    const before = await openBroker()
    const id = await create(before)
    await say(before, id, '/say one')
    await relay.close()
    restartCluster()
    const workers = [await openWorker(), await openWorker(), await openWorker()]
    const [one, two] = [await openBroker(), await openBroker()]
    const asked = Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? one : two).getSession(TENANT, id))
    for (const session of await Promise.all(asked)) expect(session).to.include({ message_count: 2 })
    expect(workers.flatMap(({ worker }) => [...worker.sessions()])).to.have.length(1)
  })

  it('D32: a worker that another one has replaced ends its run with worker_lost, and writes nothing', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const id = await create(broker)
    await say(broker, id, '/say one')
    const [session] = first.worker.sessions()
    const workspace = session?.workspace ?? ''
    const seq = session?.log?.nextSeq ?? 0
    const summary = await sessionStore.find(TENANT, id)
    const { message_count, title, last_message_at, model, usage, remembered } = summary ?? expect.fail('not stored')
    const facts = { message_count, title, last_message_at, model, usage, remembered }
    const entry = { at: new Date().toISOString(), facts, messages: [] }
    await sessionStore.append([
      { tenant: TENANT, sessionId: id, workspace, seq, owner: 'b', entry, expiresMs: Date.now() + 1e6 },
    ])
    expect(await say(broker, id, '/say lost'))
      .to.contain('worker_lost')
      .and.not.contain('event: done')
    expect([...first.worker.sessions()]).to.deep.equal([])
    expect(await say(broker, id, '/say two')).to.contain('event: done')
    expect(await textsOf(broker, id)).to.deep.equal(['/say one', 'one', '/say two', 'two'])
  })

  it('D32: the sessions of a worker that drains go on at another, which stores their next turns', async () => {
    const leaving = await openWorker()
    const broker = await openBroker()
    const id = await create(broker)
    await say(broker, id, '/say one')
    const staying = await openWorker()
    await leaving.drain(1_000)
    await leaving.leave()
    await say(broker, id, '/say two')
    const loaded = await sessionStore.load(TENANT, id)
    expect(loaded?.messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'user', 'assistant'])
    expect([...staying.worker.sessions()]).to.have.length(1)
  })

  it('D32: tools that a session remembers are listed and forgotten when it is in no memory', async () => {
    await openWorker()
    const before = await openBroker()
    const id = await create(before)
    const { frames } = await before.sendMessage(TENANT, id, { prompt: '/tool Ask {}' })
    const asked = await until(async () => (await before.listPermissions(TENANT, { limit: 1 })).permissions[0], {
      what: 'the request',
    })
    await before.replyPermission(TENANT, id, asked.id, { allow: true, remember: 'session' })
    await textOf(frames)
    await relay.close()
    restartCluster()
    await openWorker()
    const broker = await openBroker()
    const remembered = async () => (await broker.listRemembered(TENANT, { limit: 10 })).permissions
    expect((await remembered()).map((each) => [each.session_id, each.tool_name])).to.deep.equal([[id, 'Ask']])
    await broker.getSession(TENANT, id)
    expect(await remembered(), 'each once').to.have.length(1)
    expect(await broker.forgetRemembered(TENANT, id, 'Ask')).to.equal(1)
    expect(await remembered()).to.deep.equal([])
  })
})

// Tests durability.ts, durable-inbox.ts, busy-marks.ts, one-shots.ts and go-on.ts: runs that go on, in a cluster within this process.

import { expect } from 'chai'
import { BusyMarks } from '../../../services/worker/sessions/busy-marks.ts'
import type { WorkerDeps } from '../../../services/worker/worker.ts'
import { type BusySessions, createBusySessions } from '../../../shared/agent/sessions/busy-sessions.ts'
import { oneShotSessionOf } from '../../../shared/agent/sessions/one-shot.ts'
import { createSessionStore, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { MemoryCluster } from '../../../shared/cluster/memory-cluster.ts'
import type { Owners } from '../../../shared/cluster/owners/owners.ts'
import type { GatewayRelayDeps } from '../../../shared/cluster/relay/gateway/gateway.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { createWorkspaces } from '../../../shared/work/runs/workspaces.ts'
import { statusOf, textOf } from '../../support/broker-answers.ts'
import { ALL_KEPT } from '../../support/kept-files.ts'
import { createMemoryRelay } from '../../support/relay.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

const IDLE_MS = 60_000
const RESUME_MS = 30_000

type Asking = { id: string; runId: string }

/** A cluster whose processes reach the owners through `around`. */
function clusterWith(around: (owners: Owners) => Owners): MemoryCluster {
  const cluster = new MemoryCluster()
  const connect = cluster.connect.bind(cluster)
  cluster.connect = () => {
    const ports = connect()
    return { ...ports, owners: around(ports.owners) }
  }
  return cluster
}

describe('runs that are stored', () => {
  const opened = useTestStore()
  let sessionStore: SessionStore
  let busySessions: BusySessions
  let relay: ReturnType<typeof createMemoryRelay>
  before(() => {
    sessionStore = createSessionStore(opened.store, { idleMs: IDLE_MS, resumeMs: RESUME_MS })
    busySessions = createBusySessions(opened.store)
  })
  beforeEach(() => {
    relay = createMemoryRelay(new MemoryCluster())
  })
  const marks: BusyMarks[] = []
  afterEach(async () => {
    await relay.close()
    for (const each of marks.splice(0)) await each.settled()
  })

  async function openWorker({ store = sessionStore, ...more }: Partial<WorkerDeps> & { store?: SessionStore } = {}) {
    const kept = new BusyMarks({
      ...{ store: busySessions, logs: sessionStore, owner: () => String(worker.epoch) },
      claims: { release: (session) => worker.claims.release(session) },
    })
    marks.push(kept)
    const worker = await relay.worker({
      deps: { keptSessions: { store, marks: kept }, ...more },
      limits: { sessionIdleMs: IDLE_MS },
    })
    return worker
  }
  async function openBroker(more: Partial<GatewayRelayDeps> = {}): Promise<Broker> {
    const { broker } = await relay.gateway({
      ...more,
      isStored: async ({ tenant, id }) => (await sessionStore.find(tenant, id)) !== undefined,
      busySessions,
    })
    return broker
  }
  const send = async (broker: Broker, id: string, prompt: string) => broker.sendMessage(TENANT, id, { prompt })
  const hasSession = ({ worker }: Awaited<ReturnType<typeof openWorker>>) =>
    until(() => [...worker.sessions()].length === 1, { what: 'the session to be opened' })
  const isAsking = (broker: Broker) =>
    until(async () => (await broker.listPermissions(TENANT, { limit: 9 })).permissions[0], { what: 'the run to ask' })

  it('D32.7a, D32.9b: a run whose worker died waits for the same permission at another, and the message behind it waits on', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const asking = await send(broker, id, '/tool Ask {}\n/say bye')
    const behind = await send(broker, id, '/say next')
    const asked = await isAsking(broker)
    const second = await openWorker()
    await relay.kill(first)
    const [text, next] = [textOf(asking.frames), textOf(behind.frames)]
    await hasSession(second)
    const isOpen = () =>
      broker.replyPermission(TENANT, id, asked.id, { allow: true }).then(
        () => true,
        () => false,
      )
    await until(isOpen, { what: 'the permission to be given' })
    expect(await text).to.match(/run_recovered[^]*event: turn_start[^]*event: permission_resolved[^]*event: done/)
    expect(await next).to.match(/event: done/)
    expect((await text).match(new RegExp(`event: permission_request\ndata: {"id":"${asked.id}"`, 'g'))).to.have.length(
      2,
    )
  })

  it('D49.6: what a run, and a message behind it, was told before its worker died is read once at another, which knows it when it is told again', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const asking = await send(broker, id, '/tool Ask {}\n/say bye')
    const behind = await send(broker, id, '/say next')
    const [text, next] = [textOf(asking.frames), textOf(behind.frames)]
    const asked = await isAsking(broker)
    const tell = (runId: string, word: string) => broker.steerRun(TENANT, runId, { id: word, text: `/say ${word}` })
    await tell(asking.runId, 'left')
    await tell(behind.runId, 'right')
    await openWorker()
    await relay.kill(first)
    await tell(asking.runId, 'left')
    await tell(asking.runId, 'up')
    const give = async () => (await statusOf(broker.replyPermission(TENANT, id, asked.id, { allow: true }))) === 200
    await until(give, { what: 'the permission to be given' })
    const steered = (events: string) =>
      [...events.matchAll(/event: steered\ndata: {"id":"(\w+)"/g)].map(([, word]) => word)
    expect(steered(await text)).to.deep.equal(['left', 'up'])
    expect(steered(await next)).to.deep.equal(['right'])
    const { messages } = await broker.listMessages(TENANT, id, { limit: 99 })
    const told = messages.flatMap(({ client_id }) => client_id ?? [])
    expect(told).to.deep.equal(['left', 'up', 'right'])
    for (const { runId } of [asking, behind]) expect(await statusOf(tell(runId, 'late'))).to.equal(409)
  })

  it('D32.8: the sessions of a dead worker are claimed by the one that opens them, all with one call', async () => {
    const taken: string[] = []
    relay = createMemoryRelay(
      clusterWith((owners) => ({
        ...owners,
        takeOver: async (...args) => {
          const isTaken = await owners.takeOver(...args)
          if (isTaken) taken.push(args[0].id)
          return isTaken
        },
        replace: () => expect.fail('a gateway claims a session'),
      })),
    )
    const first = await openWorker()
    const broker = await openBroker()
    const ids = await Promise.all(
      Array.from({ length: 3 }, async () => (await broker.createSession(TENANT)).session_id),
    )
    const asking = await Promise.all(ids.map((id) => send(broker, id, '/tool Ask {}')))
    const texts = asking.map(({ frames }) => textOf(frames))
    const second = await openWorker()
    await relay.kill(first)
    await until(() => [...second.worker.sessions()].length === 3, { what: 'the sessions to be opened' })
    expect(taken.toSorted()).to.deep.equal(ids.toSorted())
    await until(async () => (await busySessions.of(String(first.epoch), 9)).length === 0, {
      what: 'no mark to be left',
    })
    for (const { runId } of asking) await broker.cancelRun(TENANT, runId)
    for (const text of texts) expect(await text).to.match(/run_recovered[^]*"code":"cancelled"/)
  })

  it('D32.7c: a one-shot run goes on, too; nobody sees its session, and nothing is left of it', async () => {
    const cluster = new MemoryCluster()
    const { owners } = cluster.connect()
    relay = createMemoryRelay(cluster)
    const first = await openWorker()
    const broker = await openBroker()
    const messages = [
      { role: 'user', content: 'before' },
      { role: 'assistant', content: 'yes' },
    ] as const
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/tool Ask {}\n/say bye', messages })
    const asked = await isAsking(broker)
    expect(asked).to.include({ run_id: runId })
    const second = await openWorker()
    await relay.kill(first)
    const text = textOf(frames)
    const key = { tenant: TENANT, id: oneShotSessionOf(runId) }
    const session = await until(() => second.worker.find(key), { what: 'the run to go on' })
    expect(session.conversation.messages[0], 'its history').to.include({ role: 'user', text: 'before' })
    expect((await broker.listSessions(TENANT, { limit: 9 })).sessions).to.deep.equal([])
    expect([...second.worker.sessions()]).to.deep.equal([])
    const give = async () => (await statusOf(broker.replyPermission(TENANT, runId, asked.id, { allow: true }))) === 200
    await until(give, { what: 'the permission to be given' })
    expect(await text).to.match(/run_recovered[^]*event: permission_resolved[^]*event: done/)
    await until(() => !second.worker.find(key), { what: 'the session to be forgotten' })
    expect(await sessionStore.load(TENANT, key.id), 'for readers that lack the end').not.to.equal(undefined)
    expect(await owners.find(key)).to.include({ epoch: second.epoch })
    await marks.at(-1)?.settled()
    expect(await sessionStore.load(TENANT, key.id)).to.equal(undefined)
    for (const { epoch } of [first, second]) expect(await busySessions.of(String(epoch), 9)).to.deep.equal([])
    await until(async () => (await owners.find(key)) === undefined, { what: 'the claim to be given back' })
  })

  it('D32.7b: a one-shot run is refused and cancelled while the store is away', async () => {
    const append = () => Promise.reject(new AppError('unavailable', 'away'))
    const { worker } = await openWorker({ store: { ...sessionStore, append } })
    const broker = await openBroker()
    expect(await statusOf(broker.startRun(TENANT, { prompt: '/tool Ask {}' }))).to.equal(503)
    await until(() => worker.liveRuns() === 0, { what: 'the run to be cancelled' })
  })

  it('D32.7c: a one-shot run that was cancelled, and one that has ended, are not gone on with', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/tool Ask {}' })
    const ended = await broker.startRun(TENANT, { prompt: '/say bye' })
    await isAsking(broker)
    const [text, other] = [textOf(frames), textOf(ended.frames)]
    await broker.cancelRun(TENANT, runId)
    expect(await text).to.match(/"code":"cancelled"/)
    expect(await other).to.match(/event: done/)
    const second = await openWorker()
    await relay.kill(first)
    await until(async () => (await busySessions.of(String(first.epoch), 9)).length === 0, {
      what: 'no mark to be left',
    })
    expect(second.worker.liveRuns()).to.equal(0)
    for (const id of [runId, ended.runId]) expect(await broker.getRun(TENANT, id)).to.include({ run_id: id })
  })

  it('D32.7c: without a shared folder a one-shot run goes on with the files that the store keeps, and names those that it lacks', async () => {
    const lost = ['a.txt']
    const workspaces = { ...createWorkspaces('/nowhere'), kept: { ...ALL_KEPT, lacks: async () => lost } }
    const first = await openWorker({ workspaces })
    const broker = await openBroker()
    const asking = await broker.startRun(TENANT, { prompt: '/tool Ask {}\n/say bye' })
    const asked = await isAsking(broker)
    const second = await openWorker({ workspaces })
    const text = textOf(asking.frames)
    await relay.kill(first)
    await until(() => second.worker.liveRuns() === 1, { what: 'the run to go on' })
    await broker.replyPermission(TENANT, asking.runId, asked.id, { allow: true })
    expect(await text).to.match(/run_recovered[^\n]*"lost_files":\["a.txt"\][^]*bye[^]*event: done/)
  })

  it('D32.7b: a run that was cancelled is not gone on with', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const { runId, frames } = await send(broker, id, '/tool Ask {}')
    await isAsking(broker)
    const text = textOf(frames)
    await broker.cancelRun(TENANT, runId)
    expect(await text).to.match(/"code":"cancelled"/)
    const loaded = await sessionStore.load(TENANT, id)
    expect(loaded?.runs.open).to.deep.equal([])
    const second = await openWorker()
    await relay.kill(first)
    await until(async () => (await statusOf(broker.getSession(TENANT, id))) === 200, {
      what: 'the session to be opened',
    })
    expect([...second.worker.sessions()].map(({ summary }) => summary.active_run_id)).to.deep.equal([null])
  })

  for (const [what, end] of [
    ['cancelled', (broker: Broker, { runId }: Asking) => broker.cancelRun(TENANT, runId)],
    ['session_deleted', (broker: Broker, { id }: Asking) => broker.deleteSession(TENANT, id)],
  ] as const)
    it(`D37.3: a run that asks ends with ${what} also while its worker is dead, which resolves its request: no reply is accepted any more`, async () => {
      const first = await openWorker()
      const broker = await openBroker()
      const { session_id: id } = await broker.createSession(TENANT)
      const { runId, frames } = await send(broker, id, '/say one\n/tool Ask {}')
      const behind = await send(broker, id, '/say next')
      const asked = await isAsking(broker)
      const text = textOf(frames)
      await openWorker()
      await relay.kill(first)
      await end(broker, { id, runId })
      expect(await statusOf(broker.replyPermission(TENANT, id, asked.id, { allow: true }))).to.equal(404)
      expect(await text).to.match(new RegExp(`run_recovered[^]*event: error\ndata: [^\n]*"code":"${what}"[^\n]*\n\n$`))
      const last = (await text).slice((await text).lastIndexOf('run_recovered'))
      const isResolved = new RegExp(`event: permission_resolved\ndata: {"id":"${asked.id}"[^\n]*"how":"cancelled"`)
      expect(last).to.match(isResolved)
      expect((await broker.listPermissions(TENANT, { limit: 9 })).permissions).to.deep.equal([])
      expect(await textOf(behind.frames)).to.match(what === 'cancelled' ? /event: done/ : /session_deleted/)
    })

  const clientCall = (broker: Broker, not = '') =>
    until(
      async () => {
        const { permissions } = await broker.listPermissions(TENANT, { limit: 9, kind: 'tool_call' })
        return permissions.find((each) => each.id !== not)
      },
      { what: 'the run to call a tool of its client' },
    )

  it('D45.4b: a call that the client makes is listed, and can be answered, while its worker is dead, and the session has its tools at the next one', async () => {
    const first = await openWorker()
    const lost = Promise.withResolvers<void>()
    const broker = await openBroker({ onMemberLost: () => lost.resolve() })
    const { session_id: id } = await broker.createSession(TENANT)
    const message = { prompt: '/tool get_order {"id":"A"}\n/say bye', client_tools: [{ name: 'get_order' }] }
    const asking = await broker.sendMessage(TENANT, id, message)
    const behind = await send(broker, id, '/tool get_order {"id":"B"}\n/say next')
    const asked = await clientCall(broker)
    await relay.kill(first)
    const [text, next] = [textOf(asking.frames), textOf(behind.frames)]
    await lost.promise
    const { permissions } = await broker.listPermissions(TENANT, { limit: 9, kind: 'tool_call' })
    expect(permissions, 'while no worker has the run').to.deep.equal([asked])
    await hasSession(await openWorker())
    const answer = { answer: { output: 'sent', isError: false }, by: 'ada' }
    await broker.answerCall(TENANT, id, asked.id, answer)
    expect(await statusOf(broker.answerCall(TENANT, id, asked.id, answer))).to.equal(409)
    const again = await text
    expect(again).to.match(
      /run_recovered[^]*event: tool_use[^\n]*\n[^\n]*"executor":"client"[^]*"output":"sent"[^\n]*"by":"ada"[^]*event: done/,
    )
    const deadlines = again.match(/"executor":"client","expires_at":"[^"]*"/g)
    expect(new Set(deadlines).size, 'the same call with one deadline').to.equal(1)
    const other = await clientCall(broker, asked.id)
    expect(other.input).to.deep.equal({ id: 'B' })
    await broker.answerCall(TENANT, id, other.id, answer)
    expect(await next).to.match(/"output":"sent"[^]*event: done/)
  })

  it('D45.4a: a run that is cancelled while its worker is dead resolves the calls of its client, and takes no answer any more', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const run = { prompt: '/tool get_order {}', client_tools: [{ name: 'get_order' }] }
    const { runId, frames } = await broker.startRun(TENANT, run)
    const asked = await clientCall(broker)
    const text = textOf(frames)
    await openWorker()
    await relay.kill(first)
    await broker.cancelRun(TENANT, runId)
    const answer = { answer: { output: 'late', isError: false } }
    expect(await statusOf(broker.answerCall(TENANT, runId, asked.id, answer))).to.equal(404)
    const last = (await text).slice((await text).lastIndexOf('run_recovered'))
    expect(last).to.match(
      /"executor":"client"[^]*event: tool_result[^\n]*\n[^\n]*"how":"cancelled"[^]*"code":"cancelled"/,
    )
  })

  it('D32.7a: runs that their worker has ended when nobody could hear it any more are found at another, with their ends', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const { frames } = await send(broker, id, '/sleep 500\n/say late')
    const behind = await send(broker, id, '/say next')
    const [text, next] = [textOf(frames), textOf(behind.frames)]
    const second = await openWorker()
    await relay.kill(first)
    await hasSession(second)
    expect(await next).to.match(/event: text\ndata: [^\n]*next[^]*event: done/)
    expect(await text).to.match(/run_recovered[^]*event: text\ndata: [^\n]*late[^]*event: done/)
    expect((await text).match(/run_recovered/g)).to.have.length(1)
  })

  it('D32.8: messages that moved with their session from a draining worker go on when the next one dies', async () => {
    const leaving = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const asking = await send(broker, id, '/tool Ask {}')
    const behind = await send(broker, id, '/tool Ask {}\n/say next')
    const asked = await isAsking(broker)
    const second = await openWorker()
    const [, text] = [textOf(asking.frames), textOf(behind.frames)]
    await broker.steerRun(TENANT, behind.runId, { id: 'left', text: '/tool Ask {}\n/say told' })
    const draining = leaving.drain(5_000)
    await broker.replyPermission(TENANT, id, asked.id, { allow: true })
    await draining
    await leaving.leave()
    await until(async () => (await broker.listPermissions(TENANT, { limit: 9 })).permissions.length === 1, {
      what: 'the message behind to be answered at the second worker',
    })
    await until(async () => (await busySessions.of(String(second.epoch), 9)).length === 1, { what: 'the mark' })
    const third = await openWorker()
    await relay.kill(second)
    await hasSession(third)
    await until(
      async () => {
        const [request] = (await broker.listPermissions(TENANT, { limit: 9 })).permissions
        return request && (await statusOf(broker.replyPermission(TENANT, id, request.id, { allow: true }))) === 200
      },
      { what: 'the permission to be given at the third worker' },
    )
    expect(await text).to.match(/event: steered[^]*run_recovered[^]*event: steered[^]*event: done/)
  })
})

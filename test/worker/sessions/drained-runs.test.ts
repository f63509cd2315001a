// Tests draining.ts, ownership.ts, safe-point.ts and go-on.ts: what becomes of stored runs when their worker drains, in a cluster within this process.

import { expect } from 'chai'
import { BusyMarks } from '../../../services/worker/sessions/busy-marks.ts'
import type { WorkerDeps } from '../../../services/worker/worker.ts'
import { type BusySessions, createBusySessions } from '../../../shared/agent/sessions/busy-sessions.ts'
import { createSessionStore, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import { createAgentTools } from '../../../shared/agent/tools/agents/agents.ts'
import { succeed, type ToolBox } from '../../../shared/agent/tools/port.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { MemoryCluster } from '../../../shared/cluster/memory-cluster.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { statusOf, textOf } from '../../support/broker-answers.ts'
import { elapsedMs } from '../../support/elapsed.ts'
import { createMemoryRelay } from '../../support/relay.ts'
import { settled } from '../../support/settled.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

const IDLE_MS = 60_000

/** A tool that asks, and one that starts sub-agents. */
function agentsThatAsk(): ToolBox {
  const ask = {
    ...({ name: 'Ask', description: 'asks', inputSchema: {}, defaultPolicy: 'ask', isReadOnly: true } as const),
    describe: () => 'Ask wants to run',
    run: async () => succeed('it ran'),
  }
  const tools = [ask, ...createAgentTools()]
  return {
    ...{ tools, find: (name) => tools.find((each) => each.name === name), problemWith: async () => undefined },
    policyOf: (name) => (name === 'Ask' ? 'ask' : 'allow'),
  }
}

/** Longer than a test takes: what is handed over before its end is handed over at once. */
const LONG_MS = 60_000

describe('stored runs of a worker that drains', () => {
  // A worker that has gone leaves its marks to the gateways: those of a test's cluster would open the sessions of the test before.
  const opened = useTestStore({ perTest: true })
  let sessionStore: SessionStore
  let busySessions: BusySessions
  let relay: ReturnType<typeof createMemoryRelay>
  beforeEach(() => {
    sessionStore = createSessionStore(opened.store, { idleMs: IDLE_MS, resumeMs: 30_000 })
    busySessions = createBusySessions(opened.store)
    relay = createMemoryRelay(new MemoryCluster())
  })
  const marks: BusyMarks[] = []
  afterEach(async () => {
    await relay.close()
    for (const each of marks.splice(0)) await each.settled()
  })

  async function openWorker(more: Partial<WorkerDeps> = {}) {
    const kept = new BusyMarks({
      ...{ store: busySessions, logs: sessionStore, owner: () => String(worker.epoch) },
      claims: { release: (session) => worker.claims.release(session) },
    })
    marks.push(kept)
    const worker = await relay.worker({
      deps: { keptSessions: { store: sessionStore, marks: kept }, ...more },
      limits: { sessionIdleMs: IDLE_MS },
    })
    return worker
  }
  async function openBroker(): Promise<Broker> {
    const { broker } = await relay.gateway({
      isStored: async ({ tenant, id }) => (await sessionStore.find(tenant, id)) !== undefined,
      busySessions,
    })
    return broker
  }
  /** The others have heard that it leaves before its connection is closed. */
  async function leave(worker: Awaited<ReturnType<typeof openWorker>>) {
    await worker.stop()
    await settled()
    await worker.leave()
  }
  const asks = (broker: Broker, count = 1) =>
    until(
      async () => {
        const { permissions } = await broker.listPermissions(TENANT, { limit: 9 })
        return permissions.length === count && permissions
      },
      { what: 'the runs to ask' },
    )

  it('D37.4: what waits for a person goes on at another worker at once, with the same request and the message behind it', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const asking = await broker.sendMessage(TENANT, id, { prompt: '/say one\n/tool Ask {}\n/say bye' })
    const behind = await broker.sendMessage(TENANT, id, { prompt: '/say next' })
    const alone = await broker.startRun(TENANT, { prompt: '/tool Ask {}\n/say alone' })
    const texts = [asking, behind, alone].map(({ frames }) => textOf(frames))
    const asked = await asks(broker, 2)
    for (let worker = first, moves = 0; moves < 2; moves++) {
      const next = await openWorker()
      const begunAt = elapsedMs()
      await worker.drain(LONG_MS)
      expect(elapsedMs() - begunAt).to.be.below(2_000)
      await leave(worker)
      worker = next
    }
    for (const each of asked) await broker.replyPermission(TENANT, each.session_id, each.id, { allow: true })
    const [text = '', next, other = ''] = await Promise.all(texts)
    for (const [i, each] of [text, other].entries()) {
      expect(each).to.match(/"code":"run_recovered","message":"[^"]*drained[^\n]*"reason":"drained"/)
      const ids = asked.map((request) => request.id)
      const requests = each.match(new RegExp(`event: permission_request\ndata: {"id":"(${ids.join('|')})"`, 'g'))
      expect(new Set(requests).size, `request ${i}`).to.equal(1)
      expect(each).to.match(/event: permission_resolved[^]*"how":"reply"[^]*event: done/)
    }
    expect(next).to.match(/event: text\ndata: [^\n]*next[^]*event: done/)
    expect((await broker.listPermissions(TENANT, { limit: 9 })).permissions).to.deep.equal([])
  })

  it('D45.4b: what waits for a call of its client moves at once, too, and takes the answer at the next worker', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const message = { prompt: '/tool get_order {}\n/say bye', client_tools: [{ name: 'get_order' }] }
    const text = textOf((await broker.sendMessage(TENANT, id, message)).frames)
    const listed = async () => (await broker.listPermissions(TENANT, { limit: 9, kind: 'tool_call' })).permissions[0]
    const asked = await until(listed, { what: 'the run to call' })
    await openWorker()
    await first.drain(LONG_MS)
    await leave(first)
    await broker.answerCall(TENANT, id, asked.id, { answer: { output: 'sent', isError: false } })
    expect(await text).to.match(/"reason":"drained"[^]*"output":"sent"[^]*event: done/)
  })

  it('D37.4: what streams goes on at another worker behind its next complete turn, of which nothing is void', async () => {
    const released = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const work = {
      ...({ name: 'Work', description: 'works', inputSchema: {}, defaultPolicy: 'allow', isReadOnly: true } as const),
      describe: () => 'Work wants to run',
      run: async () => (begun.resolve(), await released.promise, succeed('worked')),
    }
    const toolBox = {
      ...{ tools: [work], find: () => work, policyOf: () => 'allow' as const },
      problemWith: async () => undefined,
    }
    const first = await openWorker({ toolBox })
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const { frames } = await broker.sendMessage(TENANT, id, { prompt: '/say one\n/tool Work {}\n/say two' })
    const text = textOf(frames)
    await begun.promise
    const second = await openWorker({ toolBox })
    const drained = first.drain(LONG_MS)
    await until(() => first.worker.isDraining(), { what: 'the drain' })
    released.resolve()
    await drained
    await leave(first)
    const all = await text
    expect(all).to.match(/event: turn_end[^]*run_recovered[^\n]*"turn_number":2,[^]*event: turn_start[^]*event: done/)
    expect(all.match(/event: turn_start/g)).to.have.length(2)
    expect(all.match(/event: tool_result/g)).to.have.length(1)
    expect([...second.worker.sessions()]).to.have.length(1)
  })

  it('D37.4: what is in the middle of a turn near the end of the time begins that turn anew at another worker', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const { frames } = await broker.sendMessage(TENANT, id, { prompt: '/say so far\n/sleep 3000\n/say late' })
    const reading = frames[Symbol.asyncIterator]()
    await reading.next()
    const text = textOf({ [Symbol.asyncIterator]: () => reading })
    await openWorker()
    await first.drain(600)
    await leave(first)
    expect(await text).to.match(/run_recovered[^\n]*"reason":"drained"[^]*event: text\n[^\n]*late[^]*event: done/)
    expect(await text).not.to.include('worker_draining')
  })

  it('D37.4: a request of a sub-agent keeps its id, and is answered while nobody has the run', async () => {
    const toolBox = agentsThatAsk()
    const first = await openWorker({ toolBox })
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const task = JSON.stringify({ description: 'a task', prompt: '/tool Ask {"of": "the agent"}\n/say asked' })
    const { frames } = await broker.sendMessage(TENANT, id, { prompt: `/tool Agent ${task}\n/say bye` })
    const text = textOf(frames)
    const [asked] = await asks(broker)
    await first.drain(100)
    await leave(first)
    await broker.replyPermission(TENANT, id, asked?.id ?? '', { allow: true })
    await openWorker({ toolBox })
    const all = await text
    expect(all).to.match(/run_recovered[^]*event: permission_resolved[^\n]*\n[^\n]*"how":"reply"[^]*event: done/)
    const ids = [...all.matchAll(/event: permission_request\ndata: {"id":"(\w+)"/g)].map(([, each]) => each)
    expect(new Set(ids)).to.deep.equal(new Set([asked?.id]))
    expect(ids).to.have.length(2)
    expect((await broker.listPermissions(TENANT, { limit: 9 })).permissions).to.deep.equal([])
  })

  it('D37.4: without another worker they are left to the next one, with their requests open', async () => {
    const first = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    const { runId, frames } = await broker.sendMessage(TENANT, id, { prompt: '/tool Ask {}\n/say bye' })
    const one = await broker.startRun(TENANT, { prompt: '/sleep 60000' })
    const text = textOf(frames)
    const [asked] = await asks(broker)
    await first.drain(100)
    await leave(first)
    await openWorker()
    await broker.replyPermission(TENANT, id, asked?.id ?? '', { allow: true })
    expect(await text).to.match(/run_recovered[^\n]*"reason":"drained"[^]*event: permission_resolved[^]*event: done/)
    expect(await broker.getRun(TENANT, runId)).to.include({ status: 'done' })
    await broker.cancelRun(TENANT, one.runId)
    expect(await textOf(one.frames)).to.match(/run_recovered[^]*"code":"cancelled"/)
  })

  it('D37.1: where runs are not stored, one that asks ends with worker_draining, and its request before', async () => {
    const first = await relay.worker()
    const { broker } = await relay.gateway()
    const { runId, frames } = await broker.startRun(TENANT, { prompt: '/tool Ask {}' })
    const text = textOf(frames)
    const [asked] = await asks(broker)
    void first.drain(50)
    expect(await text).to.match(
      /event: permission_resolved\n[^\n]*"how":"cancelled"[^\n]*\n\nid: [^]*"worker_draining"/,
    )
    expect(await statusOf(broker.replyPermission(TENANT, runId, asked?.id ?? '', { allow: true }))).to.equal(404)
  })
})

// Tests durable-inbox.ts, adopted-queue.ts and run-starts.ts: what was refused did not happen (D36), in a cluster within this process.

import { expect } from 'chai'
import { BusyMarks } from '../../../services/worker/sessions/busy-marks.ts'
import { type BusySessions, createBusySessions } from '../../../shared/agent/sessions/busy-sessions.ts'
import { oneShotSessionOf } from '../../../shared/agent/sessions/one-shot.ts'
import { createSessionStore, type SessionStore } from '../../../shared/agent/sessions/store.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { textOf } from '../../support/broker-answers.ts'
import { NO_REPORTER } from '../../support/no-reporter.ts'
import { createMemoryRelay } from '../../support/relay.ts'
import { useTestStore } from '../../support/test-store.ts'
import { until } from '../../support/until.ts'

const IDLE_MS = 60_000

/** A store that carries writes out, or answers them, only when it goes on. */
function stallable(store: SessionStore) {
  let gate: PromiseWithResolvers<void> | undefined
  let [added, appended] = [0, 0]
  return {
    stall: () => (gate = Promise.withResolvers()),
    goOn() {
      gate?.resolve()
      gate = undefined
    },
    get added() {
      return added
    },
    get appended() {
      return appended
    },
    store: {
      ...store,
      async add(...args) {
        await gate?.promise
        const isAdded = await store.add(...args)
        added++
        return isAdded
      },
      async append(writes) {
        await gate?.promise
        const done = await store.append(writes)
        appended += writes.length
        return done
      },
    } satisfies SessionStore,
  }
}

describe('what was refused', () => {
  const opened = useTestStore()
  let stalling: ReturnType<typeof stallable>
  let busySessions: BusySessions
  let relay: ReturnType<typeof createMemoryRelay>
  let started: string[]
  let ended: string[]
  const marks: BusyMarks[] = []
  before(() => {
    busySessions = createBusySessions(opened.store)
  })
  beforeEach(() => {
    stalling = stallable(createSessionStore(opened.store, { idleMs: IDLE_MS, resumeMs: 30_000 }))
    relay = createMemoryRelay()
    started = []
    ended = []
  })
  afterEach(async () => {
    stalling.goOn()
    await relay.close()
    for (const each of marks.splice(0)) await each.settled()
  })

  async function openWorker(store: SessionStore = stalling.store) {
    const kept = new BusyMarks({
      ...{ store: busySessions, logs: stalling.store, owner: () => String(worker.epoch) },
      claims: { release: (session) => worker.claims.release(session) },
    })
    marks.push(kept)
    const reporter = {
      ...NO_REPORTER,
      runStarted: ({ id }: { id: string }) => void started.push(id),
      runEnded: ({ id }: { id: string }) => void ended.push(id),
    }
    const worker = await relay.worker({
      deps: { keptSessions: { store, marks: kept }, reporter },
      limits: { sessionIdleMs: IDLE_MS },
    })
    return worker
  }
  async function openBroker(): Promise<Broker> {
    const { broker } = await relay.gateway({
      isStored: async ({ tenant, id }) => (await stalling.store.find(tenant, id)) !== undefined,
      busySessions,
    })
    return broker
  }
  const refusalOf = (work: Promise<unknown>): Promise<AppError> =>
    work.then(
      () => expect.fail('nothing was refused'),
      (cause: unknown) => (cause instanceof AppError ? cause : Promise.reject(cause)),
    )
  const promptsOf = async (broker: Broker, id: string) =>
    (await broker.listMessages(TENANT, id, { limit: 99 })).messages.flatMap(({ role, blocks }) =>
      role === 'user' ? [JSON.stringify(blocks)] : [],
    )

  it('D36.1: for the store’s sake is refused with that reason, at one worker, and never begins, though the store carries it out later', async () => {
    const workers = [await openWorker(), await openWorker()]
    const broker = await openBroker()
    const named: string[] = []
    stalling.stall()
    const onNamed = async (runId: string) => void named.push(runId)
    const refusal = await refusalOf(broker.startRun(TENANT, { prompt: '/say hi' }, onNamed))
    expect(refusal).to.include({ status: 503, code: 'storage_unavailable' })
    expect(named, 'the second worker was not asked').to.have.length(1)
    for (const { worker } of workers) expect(worker.liveRuns()).to.equal(0)
    stalling.goOn()
    await until(() => stalling.appended >= 2, { what: 'the store to have that it was refused' })
    const log = await stalling.store.load(TENANT, oneShotSessionOf(named[0] ?? ''))
    expect([log?.runs.open, started, ended]).to.deep.equal([[], [], []])
  })

  it('D36.1: while a write has no answer for longer than clients wait, starts are refused at once, and leave nothing behind', async () => {
    const { worker } = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    stalling.stall()
    await refusalOf(broker.sendMessage(TENANT, id, { prompt: '/say first' }))
    const atOnce = async () => {
      const from = performance.now()
      await refusalOf(broker.startRun(TENANT, { prompt: '/say hi' }))
      return performance.now() - from < 300
    }
    await until(atOnce, { what: 'a start to be refused at once' })
    const before = [...worker.sessions()].length
    await refusalOf(broker.startRun(TENANT, { prompt: '/say hi' }))
    expect([[...worker.sessions()].length, worker.liveRuns(), started]).to.deep.equal([before, 0, []])
  })

  it('D36.2: a message that was refused is not in the history, gives no title, and is there once when it is sent again', async () => {
    await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    stalling.stall()
    expect(await refusalOf(broker.sendMessage(TENANT, id, { prompt: '/say one' }))).to.include({
      code: 'storage_unavailable',
    })
    expect(await broker.getSession(TENANT, id)).to.include({ title: null, active_run_id: null, queued: 0 })
    stalling.goOn()
    const send = () => broker.sendMessage(TENANT, id, { prompt: '/say one' }).catch(() => undefined)
    const again = await until(send, { what: 'the store to take it' })
    expect(await textOf(again.frames)).to.match(/event: done/)
    expect(await promptsOf(broker, id)).to.have.length(1)
    expect([started, ended]).to.deep.equal([[again.runId], [again.runId]])
  })

  it('D36.3: what a worker had stored of a refused message when it died is not begun by the next one, and its session goes on', async () => {
    const stored = Promise.withResolvers<void>()
    let isDead = false
    const append: SessionStore['append'] = async (writes) => {
      if (isDead) return new Promise(() => {}) // It dies before it has said more.
      isDead = true
      const added = await stalling.store.append(writes)
      stored.resolve()
      return added
    }
    const first = await openWorker({ ...stalling.store, append })
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    stalling.stall()
    await refusalOf(broker.sendMessage(TENANT, id, { prompt: '/say refused' }))
    stalling.goOn()
    await stored.promise
    const second = await openWorker()
    await relay.kill(first)
    const session = await until(() => second.worker.find({ tenant: TENANT, id }), { what: 'the session to be opened' })
    await until(() => session.summary.active_run_id !== null, { what: 'what was stored to be found' })
    expect(started).to.deep.equal([])
    expect(await promptsOf(broker, id)).to.deep.equal([])
  })

  it('D36.1: a run that no gateway has accepted does not begin, and leaves no trace when it is taken back', async () => {
    const { worker } = await openWorker()
    const { inbox } = worker
    const runId = `run_${'0'.repeat(31)}1`
    await inbox.startRun(TENANT, runId, { prompt: '/say hi' })
    expect(inbox.getRun(TENANT, runId)).to.include({ status: 'waiting' })
    await inbox.cancelRun(TENANT, runId, { isAccepted: false })
    expect(() => inbox.getRun(TENANT, runId)).to.throw('no run')
    expect([started, ended, worker.liveRuns()]).to.deep.equal([[], [], 0])
  })

  it('D36.1: one that a client has is cancelled although its gateway takes it back', async () => {
    const { inbox } = (await openWorker()).worker
    const runId = `run_${'0'.repeat(31)}2`
    await inbox.startRun(TENANT, runId, { prompt: '/sleep 60000' })
    await inbox.acceptRun(TENANT, runId)
    await until(() => started.length > 0, { what: 'the run to begin' })
    await inbox.cancelRun(TENANT, runId, { isAccepted: false })
    await until(() => ended.length > 0, { what: 'the run to end' })
    expect(inbox.getRun(TENANT, runId)).to.include({ status: 'cancelled' })
  })

  it('D36.4: a session whose creation was refused is not there when the store carries it out later, and is created when it is sent again', async () => {
    await openWorker()
    const broker = await openBroker()
    stalling.stall()
    expect(await refusalOf(broker.createSession(TENANT, 'chosen'))).to.include({ code: 'storage_unavailable' })
    stalling.goOn()
    await until(() => stalling.added > 0, { what: 'the store to carry it out' })
    expect(await refusalOf(broker.getSession(TENANT, 'chosen'))).to.include({ status: 404 })
    expect(await broker.createSession(TENANT, 'chosen')).to.include({ session_id: 'chosen' })
    const { frames } = await broker.sendMessage(TENANT, 'chosen', { prompt: '/say hi' })
    expect(await textOf(frames)).to.match(/event: done/)
  })

  it('D36.4: a title and a forgotten tool that are not stored are as before', async () => {
    const { worker } = await openWorker()
    const broker = await openBroker()
    const { session_id: id } = await broker.createSession(TENANT)
    await broker.renameSession(TENANT, id, 'before')
    worker.find({ tenant: TENANT, id })?.remembered.add('Ask')
    stalling.stall()
    expect(await refusalOf(broker.renameSession(TENANT, id, 'after'))).to.include({ code: 'storage_unavailable' })
    expect(await refusalOf(broker.forgetRemembered(TENANT, id))).to.include({ code: 'storage_unavailable' })
    const session = await broker.getSession(TENANT, id)
    expect([session.title, session.remembered.map(({ tool_name }) => tool_name)]).to.deep.equal(['before', ['Ask']])
  })
})

// Tests worker.ts, inbox.ts, draining.ts and ownership.ts: what each command does in a worker with the demo model.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { expect } from 'chai'
import type { WorkerLimits } from '../../services/worker/worker.ts'
import { succeed, type Tool, type ToolBox } from '../../shared/agent/tools/port.ts'
import { workspacePath } from '../../shared/agent/tools/workspace/workspace.ts'
import { CursorStream } from '../../shared/cluster/journal/cursor-stream.ts'
import type { FrameCursor } from '../../shared/cluster/journal/frame-stream.ts'
import type { HeldSession } from '../../shared/cluster/owners/held-claims.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import type { PermissionStore } from '../../shared/cluster/permissions/store.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { type Metrics, NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { createServerModels } from '../../shared/work/runs/models.ts'
import { createWorkspaces } from '../../shared/work/runs/workspaces.ts'
import { createDemoWorker, DEMO_MODELS, NO_CLAIMS } from '../support/demo-worker.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'

type Forgotten = Parameters<PermissionStore['forget']>

/** A worker with the demo model. `forgotten` lists the calls of the permission store's `forget`. */
function setUp(limits: Partial<WorkerLimits> = {}) {
  const forgotten: Forgotten[] = []
  const removed: HeldSession[] = []
  const gauges = new Map<string, () => unknown>()
  const store = createMemoryPermissionStore()
  const permissions: PermissionStore = {
    ...store,
    forget(...ids) {
      forgotten.push(ids)
      return store.forget(...ids)
    },
  }
  const gauge: Metrics['gauge'] = (name, read) => void gauges.set(name, read)
  const worker = createDemoWorker(permissions, limits, {
    metrics: { ...NO_METRICS, gauge },
    claims: { ...NO_CLAIMS, release: async (session) => removed.push(session) > 0 },
  })
  const { inbox } = worker
  const run = (prompt: string) => {
    const id = newId('run')
    void inbox.startRun(TENANT, id, { prompt })
    void inbox.acceptRun(TENANT, id)
    return id
  }
  const message = (sessionId: string, prompt: string) => {
    const id = newId('run')
    void inbox.sendMessage(TENANT, id, { sessionId, prompt })
    void inbox.acceptRun(TENANT, id)
    return id
  }
  const read = (runId: string) => textOf(inbox.followRun(TENANT, runId, 0))
  return { worker, inbox, run, message, read, forgotten, removed, gauges, store }
}

async function textOf(cursor: FrameCursor): Promise<string> {
  let text = ''
  for await (const chunk of new CursorStream(cursor)) text += Buffer.from(chunk.text)
  return text
}

const refusalOf = (act: () => unknown): AppError => {
  try {
    act()
  } catch (error) {
    if (error instanceof AppError) return error
  }
  throw new Error('nothing was refused')
}

describe('a worker', () => {
  it('D4.5b: forgets an ended one-shot run after RUN_RESUME_SECS, and looks for no permission requests if it had none', async () => {
    const { inbox, run, read, forgotten, worker } = setUp({ runResumeMs: 1 })
    const id = run('/say hello')
    await read(id)
    await until(() => !worker.knowsRun(TENANT, id), { what: 'the run to be forgotten' })
    expect(forgotten).to.deep.equal([])
    expect(refusalOf(() => inbox.getRun(TENANT, id)).status).to.equal(404)
    expect(refusalOf(() => inbox.followRun(TENANT, id, 0)).status).to.equal(404)
    expect(refusalOf(() => inbox.cancelRun(TENANT, id)).status).to.equal(404)
  })

  it('D4.5b: forgets an ended run of a session with its own permission requests, and keeps the session', async () => {
    const { inbox, message, read, store, forgotten, worker } = setUp({ runResumeMs: 1 })
    void inbox.createSession(TENANT, 's1', 'a1')
    const id = message('s1', '/tool Ask {}')
    const reading = read(id)
    const isListed = async () => (await store.list(TENANT, { limit: 1 })).permissions.length > 0
    await until(isListed, { what: 'the run to wait for permission' })
    void inbox.cancelRun(TENANT, id)
    await reading
    await until(() => forgotten.length > 0, { what: 'the run to be forgotten' })
    expect(forgotten).to.deep.equal([[TENANT, 's1', id]])
    expect(inbox.getSession(TENANT, 's1')).to.have.property('message_count').above(0)
    worker.abortAll()
  })

  it('a permission request of a forgotten run cannot be answered', async () => {
    const { inbox, run, read, store, forgotten } = setUp({ runResumeMs: 1 })
    const id = run('/tool Ask {}')
    const reading = read(id)
    await until(() => inbox.getRun(TENANT, id).status === 'waiting', { what: 'the run to wait for permission' })
    const listed = async () => (await store.list(TENANT, { limit: 1 })).permissions[0]?.id
    const requestId = await until(listed, { what: 'the permission request to be listed' })
    void inbox.cancelRun(TENANT, id)
    await reading
    await until(() => forgotten.length > 0, { what: 'the run to be forgotten' })
    const request = { tenant: TENANT, scopeId: id, id: requestId }
    expect(await store.decide(request, { state: 'allowed' })).to.deep.equal({ isWon: false, state: undefined })
  })

  it('removes the permission requests of a deleted session, and reports it', async () => {
    const { inbox, forgotten, removed } = setUp()
    void inbox.createSession(TENANT, 's1', 'a1')
    await inbox.deleteSession(TENANT, 's1')
    expect(forgotten).to.deep.equal([[TENANT, 's1']])
    expect(removed.map(({ id }) => id)).to.deep.equal(['s1'])
  })

  it('does not report a session that was released to another worker', () => {
    const { worker, inbox, removed } = setUp()
    void inbox.createSession(TENANT, 's1', 'a1')
    const [session] = worker.sessions()
    worker.release(session ?? expect.fail('no session'))
    expect([...worker.sessions()]).to.deep.equal([])
    expect(removed).to.deep.equal([])
  })

  it('api.md States: a draining worker refuses new work with 503 worker_draining, and serves the rest', async () => {
    const { worker, inbox, run, message, read } = setUp()
    void inbox.createSession(TENANT, 's1', 'a1')
    const id = run('/tool Ask {}')
    const reading = read(id)
    await until(() => inbox.getRun(TENANT, id).status === 'waiting', { what: 'the run to wait for permission' })
    const draining = worker.drain(60_000)
    expect(worker.isDraining()).to.equal(true)
    for (const act of [() => run('hi'), () => message('s1', 'hi'), () => inbox.createSession(TENANT, 's2', 'a1')]) {
      expect(refusalOf(act)).to.include({ status: 503, code: 'worker_draining', retryAfterSecs: 5 })
    }
    // Another worker may have a copy of the session already, which would not know of the change.
    for (const act of [() => inbox.renameSession(TENANT, 's1', 'Boats'), () => inbox.forgetRemembered(TENANT, 's1')])
      expect(refusalOf(act)).to.include({ status: 503, code: 'worker_draining' })
    expect(inbox.getSession(TENANT, 's1')).to.include({ title: null })
    expect(refusalOf(() => message('nobody', 'hi')).status).to.equal(404)
    expect(worker.liveRuns()).to.equal(1)
    void inbox.cancelRun(TENANT, id)
    await draining
    expect(await reading).to.include('"code":"cancelled"')
    worker.abortAll()
  })

  it('D1.3 SESSION_MEMORY_MB: a message to a session without room is 429, and starts no run', () => {
    const { worker, inbox, message } = setUp({ sessionMemoryBytes: 1, sessionsPerTenant: 1 })
    void inbox.createSession(TENANT, 's1', 'a1', [
      { role: 'user', content: 'a long question' },
      { role: 'assistant', content: 'an answer' },
    ])
    expect(refusalOf(() => message('s1', 'hi')).status).to.equal(429)
    expect([worker.liveRuns(), inbox.listRuns(TENANT, { limit: 1 }).runs]).to.deep.equal([0, []])
    worker.abortAll()
  })

  it('D4.5g: a run is cancelled while the models of its tenant are loaded, and never begins', async () => {
    const loaded = Promise.withResolvers<void>()
    const store = createMemoryPermissionStore()
    const models = { ...createServerModels(DEMO_MODELS), load: () => loaded.promise }
    const { inbox, liveRuns } = createDemoWorker(store, {}, { models })
    const starting = inbox.startRun(TENANT, 'run_1', { prompt: '/say hello' })
    void inbox.cancelRun(TENANT, 'run_1')
    loaded.resolve()
    const refused = await Promise.resolve(starting).catch((cause: unknown) => cause)
    expect(String(refused)).to.include('the run was cancelled before it began')
    expect(liveRuns()).to.equal(0)
  })

  it('D4.8: runs that have not ended in time end with worker_draining', async () => {
    const { worker, inbox, run, read } = setUp()
    const id = run('/tool Ask {}')
    const reading = read(id)
    await until(() => inbox.getRun(TENANT, id).status === 'waiting', { what: 'the run to wait for permission' })
    await worker.drain(0)
    expect(await reading).to.include('"code":"worker_draining"')
    expect(worker.liveRuns()).to.equal(0)
  })

  it('P2: an evicted worker ends its runs with worker_lost and forgets its sessions', async () => {
    const { worker, inbox, message, read, removed } = setUp()
    void inbox.createSession(TENANT, 's1', 'a1')
    const id = message('s1', '/tool Ask {}')
    const reading = read(id)
    await until(() => inbox.getRun(TENANT, id).status === 'waiting', { what: 'the run to wait for permission' })
    worker.abortAll()
    expect(await reading).to.include('"code":"worker_lost"')
    expect([...worker.sessions()]).to.deep.equal([])
    expect(removed).to.deep.equal([])
  })

  it('reports its runs by status and its sessions as gauges', async () => {
    const { worker, inbox, run, read, gauges } = setUp()
    void inbox.createSession(TENANT, 's1', 'a1')
    await read(run('/say hello'))
    expect(gauges.get('sessions')?.()).to.equal(1)
    expect(gauges.get('runs')?.()).to.include({ done: 1, running: 0 })
    expect(gauges.get('permissions_pending')?.()).to.equal(0)
    worker.abortAll()
  })

  it('removes the folder of a one-shot run when the run to be forgotten', async () => {
    await using folder = await makeTempFolder()
    const root = folder.path
    const folders: string[] = []
    const tool: Tool = {
      name: 'Make',
      description: 'makes its folder',
      inputSchema: {},
      defaultPolicy: 'allow',
      describe: () => 'Make wants to run',
      async run(_input, { workspace }) {
        await mkdir(workspace, { recursive: true })
        folders.push(workspace)
        return succeed('made')
      },
    }
    const toolBox: ToolBox = {
      tools: [tool],
      find: () => tool,
      policyOf: () => 'allow',
      problemWith: async () => undefined,
    }
    const options = { toolBox, workspaces: createWorkspaces(root) }
    const { inbox } = createDemoWorker(createMemoryPermissionStore(), { runResumeMs: 1 }, options)
    const id = newId('run')
    await inbox.startRun(TENANT, id, { prompt: '/tool Make {}' })
    void inbox.acceptRun(TENANT, id)
    await textOf(inbox.followRun(TENANT, id, 0))
    expect(folders).to.deep.equal([workspacePath(root, TENANT, id)])
    await until(() => !existsSync(folders[0] ?? root), { what: 'the folder to be removed' })
  })
})

import { expect } from 'chai'
import { CursorStream } from '../../../shared/cluster/journal/cursor-stream.ts'
import { createMemoryPermissionStore } from '../../../shared/cluster/permissions/memory-store.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { type Admission, NO_ADMISSION } from '../../../shared/tenancy/limits/admission.ts'
import { createServerModels } from '../../../shared/work/runs/models.ts'
import { createWorkspaces, type KeptFiles } from '../../../shared/work/runs/workspaces.ts'
import { createDemoWorker, DEMO_MODELS } from '../../support/demo-worker.ts'
import { ALL_KEPT } from '../../support/kept-files.ts'

const startedAt = '2026-11-21T09:30:00.000Z'
const waitingOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ runId: newId('run'), startedAt, message: { prompt: `/say ${i}` } }))
const stateOf = (count: number) => ({
  id: 's1',
  tenant: TENANT,
  token: 'a1',
  createdAt: startedAt,
  messages: [],
  waiting: waitingOf(count),
})

type DemoWorker = ReturnType<typeof createDemoWorker>

async function textOf({ inbox }: DemoWorker, runId: string): Promise<string> {
  let text = ''
  for await (const chunk of new CursorStream(inbox.followRun(TENANT, runId, 0))) text += Buffer.from(chunk.text)
  return text
}

describe('the queue of an adopted session', () => {
  it('D4.6: is known at once under its ids and times, and is answered once the session is kept', async () => {
    const worker = createDemoWorker(createMemoryPermissionStore())
    const state = stateOf(2)
    const session = worker.adopt(state)
    for (const { runId } of state.waiting) {
      expect(worker.inbox.getRun(TENANT, runId)).to.include({ status: 'waiting', started_at: startedAt })
    }
    worker.keep(session)
    const texts = await Promise.all(state.waiting.map(({ runId }) => textOf(worker, runId)))
    for (const [i, text] of texts.entries()) expect(text).to.include(`{"text":"${i}"}`).and.include('event: done')
    expect(session.summary.message_count).to.equal(4)
    session.retire()
  })

  it('is accepted by a worker that has no room for new runs', async () => {
    const worker = createDemoWorker(createMemoryPermissionStore(), { runsPerWorker: 1 })
    const state = stateOf(3)
    const session = worker.adopt(state)
    worker.keep(session)
    for (const { runId } of state.waiting) expect(await textOf(worker, runId)).to.include('event: done')
    session.retire()
  })

  it('takes slots like other runs, so that no new run is accepted while they are taken', async () => {
    const worker = createDemoWorker(createMemoryPermissionStore(), { runsPerWorker: 2 })
    const session = worker.adopt(stateOf(2))
    const start = () => worker.inbox.startRun(TENANT, newId('run'), { prompt: '/say x' })
    expect(start).to.throw('no room for another run')
    worker.release(session)
    await start()
    expect(worker.liveRuns()).to.equal(1)
  })

  it("holds the places of its runs under the tenant's limit until they end, or leaves them to the worker that has the queue", async () => {
    const calls: string[] = []
    const admission: Admission = {
      ...NO_ADMISSION,
      hold: ({ runId }, run) => run.whenEnded(() => calls.push(`free ${runId}`)),
      handOver: (_tenant, runId) => calls.push(`hand over ${runId}`),
    }
    const worker = createDemoWorker(createMemoryPermissionStore(), {}, { admission })
    const [left, kept] = [stateOf(1), stateOf(1)]
    const [leftId, keptId] = [left, kept].map(({ waiting }) => waiting[0]?.runId ?? '') as [string, string]
    worker.release(worker.adopt(left))
    const session = worker.adopt(kept)
    worker.keep(session)
    await textOf(worker, keptId)
    expect(calls).to.deep.equal([`hand over ${leftId}`, `free ${keptId}`])
    session.retire()
  })

  it('D54.3: a message that waited for a place waits on, from the time of its start, and begins with its turn', async () => {
    const turn = Promise.withResolvers<'placed'>()
    const asked: unknown[] = []
    const admission: Admission = {
      ...NO_ADMISSION,
      waitOn(start, since) {
        asked.push([start, since.toISOString()])
        const standing = { place: 4, expectedStart: undefined }
        return { turn: turn.promise, standing, retryAfterSecs: 1, leave: () => {} }
      },
    }
    const worker = createDemoWorker(createMemoryPermissionStore(), {}, { admission })
    const state = stateOf(1)
    const [{ runId, message }] = state.waiting as [(typeof state.waiting)[0]]
    Object.assign(message, { wait_secs: 60, background: true })
    const session = worker.adopt(state)
    worker.keep(session)
    const start = { tenant: TENANT, runId, customer: undefined, priority: 'normal', waitSecs: 60 }
    expect(asked).to.deep.equal([[start, startedAt]])
    expect(worker.inbox.getRun(TENANT, runId)).to.include({ status: 'waiting', place: 4, expected_start: null })
    expect(session.isBusy).to.equal(false)
    turn.resolve('placed')
    expect(await textOf(worker, runId)).to.include('event: done')
    session.retire()
  })

  it('D35.2c: run_recovered names the changes of files that are missing here', async () => {
    const asked: unknown[] = []
    const lacks: KeptFiles['lacks'] = async (_tenant, _scope, files) => (asked.push(files), ['turn2.txt'])
    const workspaces = { ...createWorkspaces('/nowhere'), kept: { ...ALL_KEPT, lacks } }
    const worker = createDemoWorker(createMemoryPermissionStore(), {}, { workspaces })
    const [waiting] = waitingOf(1)
    const spent = { usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0, turns: 0, unpriced: [] }
    const unstored = [
      { path: 'turn2.txt', mtimeMs: 1 },
      { path: 'a', mtimeMs: 2 },
    ]
    const state = { hasBegun: false, isPlanning: false, totals: spent, agents: { started: 0, spent }, unstored }
    const earlier = { state, events: [], eventsFrom: 1, reserved: 0 }
    const session = worker.adopt({ ...stateOf(0), waiting: waiting ? [{ ...waiting, earlier }] : [] })
    worker.keep(session)
    const text = await textOf(worker, waiting?.runId ?? '')
    expect(asked).to.deep.equal([unstored])
    expect(text).to.match(
      /event: warning\n[^\n]*"code":"run_recovered"[^\n]*missing: \\"turn2.txt\\"[^\n]*"lost_files":\["turn2.txt"\]/,
    )
    session.retire()
  })

  it('ends with an error that can be repeated when there is no model for it here', async () => {
    const models = createServerModels({ ...DEMO_MODELS, primary: undefined })
    const worker = createDemoWorker(createMemoryPermissionStore(), {}, { models })
    const state = stateOf(1)
    const session = worker.adopt(state)
    worker.keep(session)
    const text = await textOf(worker, state.waiting[0]?.runId ?? '')
    expect(text).to.include('"code":"provider_unavailable"').and.include('no model').and.include('"retryable":true')
    session.retire()
  })

  it('is forgotten with the session when the worker that offered it still owns it', () => {
    const worker = createDemoWorker(createMemoryPermissionStore())
    const state = stateOf(1)
    worker.release(worker.adopt(state))
    expect(worker.liveRuns()).to.equal(0)
    expect(() => worker.inbox.getRun(TENANT, state.waiting[0]?.runId ?? '')).to.throw('no run')
  })
})

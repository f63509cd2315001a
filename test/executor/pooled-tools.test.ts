// Tests batch-waves.ts with tools/recorded-calls.ts: items whose tools are called between the turns that a vendor's batches answer, over the wire formats of the vendors.

import { expect } from 'chai'
import { BatchJobs } from '../../services/executor/batch-jobs.ts'
import { BatchWaves } from '../../services/executor/batch-waves.ts'
import { FlowJobs } from '../../services/executor/flow-jobs.ts'
import { createProvider } from '../../services/wiring/models/create-provider.ts'
import { apiBase } from '../../shared/agent/providers/base-url.ts'
import { AnsweredCalls } from '../../shared/agent/providers/batch/answered-calls.ts'
import { PoolDriver } from '../../shared/agent/providers/batch/pool/driver.ts'
import { CallPool } from '../../shared/agent/providers/batch/pool/pool.ts'
import { PoolStore } from '../../shared/agent/providers/batch/pool/store.ts'
import { openVendorBatches } from '../../shared/agent/providers/batch/vendors.ts'
import { createHttpSend } from '../../shared/agent/providers/chat/transport.ts'
import { fail, succeed, type Tool, type ToolBox, type ToolOutcome } from '../../shared/agent/tools/port.ts'
import { itemTraceId } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { hoursAfter } from '../../shared/kernel/time.ts'
import { createIdempotency } from '../../shared/platform/store/idempotency.ts'
import { NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { EMPTY_CONFIG } from '../../shared/tenancy/tenant-config/config.ts'
import { BatchCalls } from '../../shared/work/flows/batch/calls.ts'
import { BatchStore } from '../../shared/work/flows/batch/store.ts'
import { executeFlow } from '../../shared/work/flows/execute/execute.ts'
import type { Flow } from '../../shared/work/flows/port.ts'
import { StoredDispatches } from '../../shared/work/flows/store/dispatches.ts'
import { endBy } from '../../shared/work/flows/transitions.ts'
import type { Job } from '../../shared/work/queue/port.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import { newDispatch } from '../contract/dispatch-setup.ts'
import { useOpened } from '../support/fixture.ts'
import { useModelServer } from '../support/model-server/model-server.ts'
import { NO_FILES } from '../support/no-files.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { useTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'
import { VendorBatchServer } from '../support/vendor-batches.ts'

type VendorType = 'openai' | 'anthropic' | 'google'
type Opening = { epoch: number; alive: number[]; flow: Flow; outcome: () => Promise<ToolOutcome> }
const PATHS: Record<VendorType, string> = { openai: '/v1', anthropic: '/v1', google: '/v1beta' }
const AGENT = { prompt: 'Keep it.', output_schema: {}, tools: ['keep'] }
const FLOW: Flow = {
  ...{ name: 'keeper', uid: 'flow_1', version: 1, state: 'published', created_at: '', updated_at: '' },
  ...{ published_version: 1, is_built_in: false },
  definition: { input_schema: {}, output_schema: {}, tools: ['keep'], sub_agents: [], evolve: false },
}
const CHECKERS = { of: () => ({ findUnusable: async () => [], check: async () => [] }), close: async () => {} }
const NO_HOOKS = { assertBudget: async () => {}, onAnswered: async () => {} }
const send = createHttpSend({ connectMs: 1_000 })

describe('the items of batches whose flows have tools', () => {
  const opened = useTestStore()
  let called: unknown[]
  const model = useModelServer()
  const vendor = useOpened(() => new VendorBatchServer(model).listen())
  beforeEach(() => {
    called = []
    model.otherwise(({ body }) => {
      const text = JSON.stringify(body)
      const [, n = '0'] = /n[\\"]+: ?(\d)/.exec(text) ?? []
      const isOver = /was kept|interrupted/.test(text) || !text.includes('Keeps a number')
      return isOver ? '{"answer":"yes"}' : [{ tool: 'keep', input: { n: Number(n) } }]
    })
  })

  /** An executor of this epoch, whose tool ends as `outcome` says. */
  function open(type: VendorType, { epoch = 7, alive = [7], flow = FLOW, outcome = keeps }: Partial<Opening> = {}) {
    const access = { type, baseUrl: vendor.origin + PATHS[type], apiKey: 'sk-1' }
    const tool: Tool = {
      ...{ name: 'keep', description: 'Keeps a number', defaultPolicy: 'allow', describe: () => 'keeps' },
      inputSchema: { type: 'object', properties: { n: { type: 'integer' } } },
      run: ({ n }) => {
        called.push(n)
        return outcome()
      },
    }
    const toolBox: ToolBox = {
      ...{ tools: [tool], find: () => tool, problemWith: async () => undefined },
      policyOf: () => 'allow',
    }
    const [batches, dispatches] = [new BatchStore(opened.store), new StoredDispatches(opened.store)]
    const clock = { ms: Date.now() }
    const now = () => new Date(clock.ms)
    const pool = new CallPool({ store: new PoolStore(opened.store), now })
    const runs = new Runs(
      { maxLive: 100, resumeMs: 60_000, maxJournalBytes: 1_000_000 },
      { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
    )
    const shared = {
      ...{ batches, dispatches, runs, log: SILENT_LOG, checkers: CHECKERS, now, epoch: () => epoch },
      library: { published: async () => flow, definitionOf: async () => flow.definition },
      compile: async () => ({ templates: { subAgents: new Map() }, usesMemory: false }),
      executors: { isAlive: async (other: number) => alive.includes(other), hasAny: () => true },
    }
    const flows = new FlowJobs({
      ...{ ...shared, admission: NO_ADMISSION, isHeld: () => true, announce: () => {} },
      draining: new AbortController().signal,
      memory: { promptText: async () => '', remember: async () => true },
      execute: (tenant, execution, signal) =>
        executeFlow(execution, {
          async openModel(_instance, agent) {
            const item = execution.answers ?? { traceId: execution.traceId, answers: new Map() }
            const calls = new AnsweredCalls({ item, agent, base: apiBase(type, access.baseUrl).href })
            return calls.priced(await createProvider({ ...access, ...calls.behind({ send, fetch }) }))
          },
          ...{
            priceOf: () => 0,
            windowOf: () => undefined,
            checker: CHECKERS.of(),
            maxTurns: 5,
            signal,
            now: Date.now,
          },
          supportsStructuredOutput: async () => undefined,
          onBug: (cause) => expect.fail(String(cause)),
          tools: {
            ...{ toolBox, services: {}, owner: { tenant, scope: 'run' }, workspace: () => '/nowhere' },
            ...{ maxOutputChars: 1_000, canAct: async () => true, mayAct: () => true },
            onToolBug: (_tool, cause) => expect.fail(String(cause)),
          },
        }),
    })
    const openVendor = async () => openVendorBatches({ ...access, headers: {}, send })
    const waves = new BatchWaves({ ...shared, pool, flows, toolBox, openVendor })
    const driver = new PoolDriver({ store: pool.store, openVendor, ...NO_HOOKS, now, log: SILENT_LOG })
    /** Goes on with a chunk, and with its calls some time later. */
    const handle = async (job: Job) => {
      await jobs.handle(job)
      clock.ms += 10_000
      await driver.look()
      await driver.settled()
    }
    const instances = [{ name: 'main', type, revision: 'r', created_at: '', updated_at: '' }]
    const configs = { get: async () => ({ ...EMPTY_CONFIG, instances }) }
    const jobs = new BatchJobs({
      ...{ ...shared, flows, waves, configs, files: NO_FILES, keepsHistory: true, tell: async () => {} },
      ...{ admission: NO_ADMISSION, draining: new AbortController().signal },
    })
    /** A flow that has time, with its job. */
    const queueFlow = async () => {
      const times = { started_at: now().toISOString(), deadline_at: hoursAfter(now(), 24) }
      const route = { provider_instance: 'main', model: 'm-1', flow: { name: 'keeper', uid: 'flow_1', version: 1 } }
      const dispatch = newDispatch(clock.ms, { ...route, ...times, priority: 'batch' })
      await dispatches.create(TENANT, dispatch, { n: 1 })
      return { id: dispatch.trace_id, job: { kind: 'batch', tenant: TENANT, id: dispatch.trace_id } as const }
    }
    const all: Job[] = []
    const queue = { add: async (job: Job) => void all.push(job) }
    const calls = new BatchCalls({ ...shared, configs, queue, idempotency: createIdempotency(opened.store) })
    const start = async (count: number) => {
      const items = Array.from({ length: count }, (_, n) => ({ input: { n } }))
      const request = { items, provider_instance: 'main', model: 'm-1', deadline_hours: 24 }
      const { batch } = await calls.start(TENANT, 'keeper', { request, subject: 'anna', idempotencyKey: undefined })
      return { id: batch.batch_id, job: all[0] ?? expect.fail('no job') }
    }
    const finish = async (id: string, job: Job) => {
      for (let looks = 0; (await calls.get(TENANT, id)).ended_at === null && looks < 20; looks++) await handle(job)
      return (await calls.get(TENANT, id)).item_counts
    }
    const outputOf = async (id: string, item: number) => {
      const dispatch = await dispatches.get(TENANT, itemTraceId(id, item))
      return dispatch && (await dispatches.output(TENANT, dispatch))?.output
    }
    return { start, finish, handle, outputOf, queueFlow, dispatches, runs, clock }
  }

  const keeps = async (): Promise<ToolOutcome> => succeed('the number was kept')

  for (const type of ['openai', 'anthropic', 'google'] as const)
    it(`D55.6b: have their turns in batches of ${type}, and each tool call is made once, between them`, async () => {
      const [live, waves] = [vendor.liveCalls, vendor.batches.length]
      const { start, finish, outputOf } = open(type)
      const { id, job } = await start(3)
      expect(await finish(id, job)).to.include({ total: 3, ok: 3 })
      expect(called.toSorted()).to.deep.equal([0, 1, 2])
      expect(vendor.liveCalls - live).to.equal(0)
      expect(vendor.batches.length - waves).to.be.at.least(2)
      expect(await outputOf(id, 1)).to.deep.equal({ answer: 'yes' })
    })

  it('D55.6b: a call of one agent goes on where another agent of the flow waits for a vendor, and is made once', async () => {
    const sub_agents = ['a', 'b'].map((name) => ({ name, ...AGENT }))
    const flow = { ...FLOW, definition: { ...FLOW.definition, tools: [], sub_agents } }
    const late = async (): Promise<ToolOutcome> => {
      await new Promise((resolve) => setTimeout(resolve, 100)) // Longer than a rehearsal gathers calls.
      return keeps()
    }
    let calls = 0
    const { start, finish } = open('openai', { flow, outcome: () => (++calls === 1 ? keeps() : late()) })
    const { id, job } = await start(1)
    expect(await finish(id, job)).to.include({ ok: 1 })
    expect(called).to.deep.equal([0, 0])
  })

  it('D55.6b: a call that a dead process had begun is not made again: the model reads that it was interrupted', async () => {
    const hold = Promise.withResolvers<ToolOutcome>()
    const first = open('openai', { outcome: () => hold.promise })
    const { id, job } = await first.start(1)
    const hanging = first.finish(id, job)
    await until(() => called.length === 1, { what: 'the tool to be called' })
    const [waves, beside] = [vendor.batches.length, open('openai', { epoch: 8, alive: [7, 8] })]
    await beside.handle(job)
    expect(vendor.batches.length, 'the other process is at the call').to.equal(waves)
    const next = open('openai', { epoch: 9, alive: [9] })
    expect(await next.finish(id, job)).to.include({ ok: 1 })
    hold.resolve(await keeps())
    await hanging
    expect(called).to.have.length(1)
  })

  it('D58.7: so does a single flow with time, which has no job and no run while it waits; the answers of its vendor and its tools make its run', async () => {
    const [live, batches] = [vendor.liveCalls, vendor.batches.length]
    const { queueFlow, handle, dispatches, runs, clock } = open('openai')
    const { id, job } = await queueFlow()
    const before = clock.ms
    await handle(job)
    const parked = await dispatches.get(TENANT, id)
    expect([parked?.status, parked?.look_at_ms, runs.live.size]).to.deep.equal(['queued', before + 10_000, 0])
    for (let looks = 0; looks < 8; looks++) await handle(job)
    const ended = await dispatches.get(TENANT, id)
    expect(ended).to.include({ status: 'ok', turns: 2 })
    expect(ended && (await dispatches.output(TENANT, ended))?.output).to.deep.equal({ answer: 'yes' })
    expect([vendor.batches.length - batches, vendor.liveCalls - live, called]).to.deep.equal([2, 0, [1]])
  })

  it('D58.7: the calls of a flow that is cancelled while it waits are withdrawn', async () => {
    vendor.isHeld = true
    const { queueFlow, handle, dispatches } = open('openai')
    const { id, job } = await queueFlow()
    for (let looks = 0; looks < 2; looks++) await handle(job)
    expect(vendor.batches.at(-1)?.isCancelled).to.equal(false)
    const result = endBy(newDispatch(0), { type: 'cancelled', executor: null }) ?? expect.fail('no end')
    await dispatches.end(TENANT, id, { executor: null, result })
    await handle(job)
    expect(vendor.batches.at(-1)?.isCancelled).to.equal(true)
    vendor.isHeld = false
  })

  it('D55.6b: a tool that has failed is not called again', async () => {
    const { start, finish } = open('openai', { outcome: async () => fail('it was not possible; the number was kept') })
    const { id, job } = await start(1)
    expect(await finish(id, job)).to.include({ ok: 1 })
    expect(called).to.have.length(1)
  })
})

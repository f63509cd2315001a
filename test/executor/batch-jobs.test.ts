// Tests batch-jobs.ts and chunk-work.ts with work/flows/batch: batches in SQLite, whose items this process executes with answers that a test gives.

import { expect } from 'chai'
import { BatchJobs, type BatchJobsDeps, queueAnswered, reconcileBatches } from '../../services/executor/batch-jobs.ts'
import { FlowJobs } from '../../services/executor/flow-jobs.ts'
import { MetricsRegistry } from '../../services/ops/registry.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { FlowEvent } from '../../shared/kernel/events.ts'
import { itemTraceId, runIdOf } from '../../shared/kernel/ids.ts'
import { DEFAULT_TENANT as TENANT, type TenantId } from '../../shared/kernel/tenant.ts'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import { createIdempotency } from '../../shared/platform/store/idempotency.ts'
import { type Admission, NO_ADMISSION, RunAdmission } from '../../shared/tenancy/limits/admission.ts'
import { MemoryRunPlaces } from '../../shared/tenancy/limits/memory-places.ts'
import { EMPTY_CONFIG, NO_LIMITS } from '../../shared/tenancy/tenant-config/config.ts'
import { type Batch, divide, progressOf } from '../../shared/work/flows/batch/batch.ts'
import { BatchCalls } from '../../shared/work/flows/batch/calls.ts'
import { BatchStore } from '../../shared/work/flows/batch/store.ts'
import type { FlowExecution } from '../../shared/work/flows/execute/execute.ts'
import type { Dispatch, DispatchOutput, Flow } from '../../shared/work/flows/port.ts'
import { StoredDispatches } from '../../shared/work/flows/store/dispatches.ts'
import { endBy } from '../../shared/work/flows/transitions.ts'
import type { Job } from '../../shared/work/queue/port.ts'
import type { CancelCode } from '../../shared/work/runs/run-identity.ts'
import { Runs } from '../../shared/work/runs/runs.ts'
import { newDispatch, OK } from '../contract/dispatch-setup.ts'
import { NO_FILES } from '../support/no-files.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { tenantId } from '../support/tenant.ts'
import { useTestStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'

const EPOCH = 7
const DEAD = 6
const FLOW: Flow = {
  name: 'summarize',
  uid: 'flow_1',
  version: 3,
  state: 'published',
  definition: { input_schema: {}, output_schema: {}, tools: [], sub_agents: [], evolve: false },
  created_at: '',
  updated_at: '',
  published_version: 3,
  is_built_in: false,
}
const CONFIG = {
  ...EMPTY_CONFIG,
  instances: [{ name: 'main', type: 'openai' as const, revision: 'rev_1', created_at: '', updated_at: '' }],
}
/** Refuses the inputs that say so. */
const CHECKER = {
  findUnusable: async () => [],
  check: async (_schema: unknown, input: unknown) =>
    (input as { bad?: true }).bad ? [{ path: '/bad', message: 'is bad' }] : [],
}
const CHECKERS = { of: () => CHECKER, close: async () => {} }
const started = (traceId: string): FlowEvent => ({
  ...{ type: 'started', trace_id: traceId, flow_id: 'summarize', flow_version: 3 },
  ...{ provider_instance: 'main', model: 'm', at: '' },
})
const CALLER = { subject: 'anna', idempotencyKey: undefined }
const itemsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ input: { n } }))
type Result = ApiType<'FlowBatchResult'>

describe('the items of batches', () => {
  const opened = useTestStore()

  /** A gateway and an executor. `jobs` is its queue, whose jobs the test hands out. */
  function open(
    changes: Partial<Omit<BatchJobsDeps, 'admission'>> & { admission?: Admission } & {
      execute?: (execution: FlowExecution) => Promise<unknown>
    } = {},
  ) {
    const { execute = async ({ input }) => input, ...more } = changes
    const told: [string, string][] = []
    const tell = async (_tenant: TenantId, { batch_id, status }: Batch) => void told.push([batch_id, status])
    const executed: unknown[] = []
    const jobs = new Map<string, Job>()
    const queue = {
      add: async (job: Job) => void jobs.set(job.id, job),
      missing: async (_kind: string, ids: readonly string[]) => ids.filter((id) => !jobs.has(id)),
    }
    const dispatches = new StoredDispatches(opened.store)
    const batches = new BatchStore(opened.store)
    const compile = async () => ({ templates: { subAgents: new Map() }, usesMemory: false })
    const library = { published: async () => FLOW, definitionOf: async () => FLOW.definition }
    const now = () => new Date()
    const runs = new Runs(
      { maxLive: 1_000, resumeMs: 60_000, maxJournalBytes: 1_000_000 },
      { onBug: () => {}, onEvent: () => {}, onForgotten: () => {} },
    )
    const flows = new FlowJobs({
      ...{ runs, dispatches, library, compile, admission: more.admission ?? NO_ADMISSION, log: SILENT_LOG },
      memory: { promptText: async () => '', remember: async () => true },
      async *execute(_tenant, execution, signal) {
        executed.push(execution.input['n'])
        yield started(execution.traceId)
        const stopped = new Promise<never>((_, reject) => {
          const stop = () => reject(new AppError('conflict', 'stopped', { code: signal.reason as CancelCode }))
          if (signal.aborted) stop()
          signal.addEventListener('abort', stop)
        })
        const output = await Promise.race([stopped, execute(execution)])
        return { ...OK, status: 'ok', output, raw_output: '', timeline: [] }
      },
      executors: { isAlive: async (epoch) => epoch === EPOCH },
      epoch: () => EPOCH,
      isHeld: () => true,
      announce: () => {},
      draining: new AbortController().signal,
    })
    const deps: BatchJobsDeps = {
      ...{ batches, dispatches, library, compile, runs, flows, now, checkers: CHECKERS, files: NO_FILES },
      ...{ admission: NO_ADMISSION, configs: { get: async () => CONFIG }, keepsHistory: true },
      draining: new AbortController().signal,
      log: SILENT_LOG,
      tell,
      ...more,
    }
    const handler = new BatchJobs(deps)
    const calls = new BatchCalls({ ...deps, library, queue, idempotency: createIdempotency(opened.store) })
    const handle = (job: Job, giveWay?: AbortSignal) => handler.handle(job, giveWay)
    const start = async (items: object[], extra: object = {}) => {
      const request = {
        items: items as { input: Record<string, unknown> }[],
        provider_instance: 'main',
        model: 'm',
        ...extra,
      }
      return (await calls.start(TENANT, 'summarize', { request, ...CALLER })).batch.batch_id
    }
    const work = async () => {
      const all = [...jobs.values()]
      const ends = await Promise.all(all.map((job) => handle(job)))
      for (const job of all) jobs.delete(job.id)
      return ends
    }
    const resultsOf = async (id: string, after = 0): Promise<Result[]> => {
      const results: Result[] = []
      for await (const result of await calls.results(TENANT, id, after)) results.push(result)
      return results
    }
    const reconcile = () => reconcileBatches({ batches, queue, tell, now })
    return { calls, start, work, handle, jobs, executed, resultsOf, dispatches, batches, runs, reconcile, told }
  }

  it('D55: are divided among a hundred jobs at most, in their order, and a long one is alone', () => {
    for (const count of [1, 9, 801, 2_000]) {
      const chunks = divide('batch_1', itemsOf(count))
      expect(chunks.length).to.be.at.most(100)
      expect(chunks.flatMap(({ items }) => items)).to.deep.equal(itemsOf(count))
      for (const { first, items, ends } of chunks) {
        expect(items[0]?.input).to.deep.equal({ n: first - 1 })
        expect(ends).to.deep.equal(items.map(() => null))
      }
    }
    const long = { input: { text: 'x'.repeat(2_000_000) } }
    expect(divide('batch_1', [...itemsOf(2), long, ...itemsOf(3)]).map(({ items }) => items.length)).to.deep.equal([
      2, 1, 3,
    ])
  })

  it('D55: run once each, also where two processes get a job, and their results come in their order under their names', async () => {
    const { start, work, jobs, handle, executed, resultsOf, calls, batches, told } = open()
    const id = await start([...itemsOf(19), { custom_id: 'last', input: { n: 19 } }])
    expect(await calls.get(TENANT, id)).to.deep.include({ status: 'running' })
    const again = [...jobs.values()].map((job) => handle(job))
    await Promise.all([...again, work()])
    expect(executed.toSorted()).to.deep.equal(
      itemsOf(20)
        .map(({ input }) => input.n)
        .toSorted(),
    )
    const results = await resultsOf(id)
    expect(results.map(({ output }) => output)).to.deep.equal(itemsOf(20).map(({ input }) => input))
    expect(results.map(({ custom_id }) => custom_id)).to.deep.equal([
      ...itemsOf(19).map(({ input }) => String(input.n + 1)),
      'last',
    ])
    const batch = await calls.get(TENANT, id)
    expect(batch).to.deep.include({ status: 'done', model: 'm', subject: 'anna' })
    expect(batch.item_counts).to.include({ total: 20, ended: 20, ok: 20 })
    expect(batch.usage).to.deep.equal({ input_tokens: 2_000, output_tokens: 400, cost_usd: 5 })
    expect((await batches.open(undefined)).map(({ batch_id }) => batch_id)).not.to.include(id)
    expect((await resultsOf(id, 18)).map(({ item }) => item)).to.deep.equal([19, 20])
    expect(await resultsOf(id, 10_000)).to.deep.equal([])
    batches.chunks = () => Promise.reject(new Error('the chunks of a batch that has ended are not read again'))
    expect((await calls.list(TENANT, { limit: 1 })).batches).to.deep.equal([batch])
    expect(told.at(-1)).to.deep.equal([id, 'done'])
  })

  it('D55: fail alone: an input that does not fit is rejected, and a flow that fails is an error, beside the others', async () => {
    const execute = async ({ input }: FlowExecution) => {
      if (input['n'] === 1) throw new AppError('upstream', 'the provider is away', { code: 'provider_unavailable' })
      return input
    }
    const { start, work, resultsOf, calls, dispatches } = open({ execute })
    const id = await start([{ input: { bad: true } }, ...itemsOf(3)])
    await work()
    const results = await resultsOf(id)
    expect(results.map(({ status }) => status)).to.deep.equal(['rejected', 'ok', 'error', 'ok'])
    expect(results[0]?.error?.message).to.include('is bad')
    const error = { type: 'upstream_error', message: 'the provider is away', code: 'provider_unavailable' }
    expect(results[2]?.error).to.deep.equal(error)
    expect((await calls.get(TENANT, id)).item_counts).to.include({ ok: 2, rejected: 1, error: 1, ended: 4 })
    const { dispatches: listed } = await dispatches.list(TENANT, { kind: 'batch', limit: 200 })
    expect(listed.filter(({ idempotency_key: key }) => key === id)).to.have.length(4)
  })

  it('D55: go on where an executor died: what it had begun begins anew, and what had ended is not run again', async () => {
    const { start, work, executed, resultsOf, dispatches } = open()
    const id = await start(itemsOf(3))
    const begin = async (item: number): Promise<Dispatch> => {
      const more = { trace_id: itemTraceId(id, item), kind: 'batch' as const, idempotency_key: id, flow: FLOW }
      const dispatch = newDispatch(Date.now(), more)
      await dispatches.create(TENANT, dispatch, { n: item - 1 })
      await dispatches.begin(TENANT, dispatch.trace_id, DEAD)
      return dispatch
    }
    const { trace_id } = await begin(1)
    const output: DispatchOutput = { raw_output: '', output: 'from before', timeline: [] }
    await dispatches.end(TENANT, trace_id, { executor: DEAD, result: OK, output })
    await begin(2)
    await work()
    expect(executed.toSorted()).to.deep.equal([1, 2])
    expect((await resultsOf(id)).map(({ output: each }) => each)).to.deep.equal(['from before', { n: 1 }, { n: 2 }])
  })

  it('D55.3: begin and end however long the store is away in between, and are called for once', async () => {
    const away = () => Promise.reject(new AppError('unavailable', 'away', { code: 'storage_unavailable' }))
    let checks = 0
    const check = async () => (checks++ < 1 ? away() : [])
    const checkers = { of: () => ({ check, findUnusable: async () => [] }), close: async () => {} }
    const { start, work, executed, resultsOf, dispatches } = open({ checkers })
    const id = await start(itemsOf(1))
    const [input, end] = [dispatches.input.bind(dispatches), dispatches.end.bind(dispatches)]
    let [reads, writes] = [0, 0]
    dispatches.input = (...args) => (reads++ < 2 ? away() : input(...args))
    dispatches.end = (...args) => (writes++ < 12 ? away() : end(...args)) // For longer than a client would wait.
    await work()
    expect([executed, (await resultsOf(id)).map(({ status }) => status)]).to.deep.equal([[0], ['ok']])
  })

  it('D55: fail where their flow was deleted meanwhile, and say so', async () => {
    const { start, work, executed, resultsOf } = open({ library: { definitionOf: async () => undefined } })
    const id = await start(itemsOf(2))
    await work()
    const results = (await resultsOf(id)).map(({ status, error }) => `${status} ${error?.message}`)
    expect(results).to.have.length(2)
    for (const result of results) expect(result).to.match(/^error .* was deleted/)
    expect(executed).to.deep.equal([])
  })

  it('D55: begin no more after the deadline', async () => {
    const { start, work, executed, resultsOf } = open()
    const id = await start(itemsOf(2), { deadline_hours: 1 })
    const late = open({ now: () => new Date(Date.now() + 3_600_000) })
    await late.handle({ kind: 'batch', tenant: TENANT, id: `${id}-0` })
    expect((await resultsOf(id)).map(({ status, trace_id }) => [status, trace_id])).to.deep.equal([
      ['expired', itemTraceId(id, 1)],
      ['expired', itemTraceId(id, 2)],
    ])
    await work()
    expect(executed).to.deep.equal([])
  })

  it('D55: are cancelled with their batch: those at work end, the others do not begin, and what had ended stays', async () => {
    const execute = ({ input }: FlowExecution) => (input['n'] === 0 ? Promise.resolve('early') : new Promise(() => {}))
    const { start, work, executed, resultsOf, calls } = open({ execute })
    const id = await start(itemsOf(100))
    const working = work()
    await until(() => executed.length > 8, { what: 'some items to be at work' })
    await until(async () => (await calls.get(TENANT, id)).item_counts.ok === 1, { what: 'the first to be stored' })
    expect((await calls.cancel(TENANT, id)).status).to.be.oneOf(['cancelling', 'cancelled'])
    await working
    const { status, item_counts } = await calls.get(TENANT, id)
    expect([status, item_counts.ok, item_counts.cancelled]).to.deep.equal(['cancelled', 1, 99])
    expect((await resultsOf(id))[0]).to.deep.include({ status: 'ok', output: 'early' })
    const refusal = await calls.cancel(TENANT, id).catch((cause: unknown) => cause)
    expect(refusal).to.include({ kind: 'conflict' })
  })

  it('D55: wait while their tenant has as many runs as it may, and are given back when asked to give way', async () => {
    const limits = { ...NO_LIMITS, concurrent_runs: 2 }
    const payers: unknown[] = []
    const refusal = async (_tenant: TenantId, customer?: string) => {
      payers.push(customer)
      return undefined
    }
    const [places, metrics] = [new MemoryRunPlaces(() => 0), new MetricsRegistry()] // No place is free by time.
    const admission = new RunAdmission({
      ...{ limits: { of: () => limits, peek: () => limits }, budgets: { refusal } },
      ...{ places, metrics, log: SILENT_LOG },
    })
    const ends: (() => void)[] = []
    const execute = () => new Promise<void>((resolve) => ends.push(resolve))
    const { start, jobs, handle, executed } = open({ admission, execute })
    await start([{ input: { bad: true } }, ...itemsOf(20)]) // One that is refused gives its place back.
    const giveWay = new AbortController()
    const handled = [...jobs.values()].map((job) => handle(job, giveWay.signal))
    const waiting = () => metrics.gaugeValue('starts_waiting')
    await until(async () => executed.length === 1 && (await waiting()) === jobs.size, {
      what: 'one item of each chunk to wait',
    })
    expect(jobs.size).to.equal(3)
    const interactive = { tenant: TENANT, runId: 'run_1', priority: 'interactive' } as const
    expect(await admission.admit(interactive), 'the place that items leave').to.equal(undefined)
    admission.release(interactive)
    ends[0]?.()
    await until(() => ends.length === 2, { what: 'the next item to begin in the place of the first' })
    giveWay.abort()
    ends[1]?.()
    expect(await Promise.all(handled)).to.deep.equal(Array.from({ length: 3 }, () => ({ again: true })))
    await until(async () => (await places.count(TENANT)) === 0, { what: 'each place to be given back' })
    expect([executed.length, await waiting()]).to.deep.equal([2, 0])
    expect(new Set(payers), 'they are of no customer that has a budget').to.deep.equal(new Set([undefined]))
    admission.close()
  })

  it('D54.8: a flow with time until its deadline waits for a place, is given back, and ends by the deadline or when it is cancelled', async () => {
    const limits = { ...NO_LIMITS, concurrent_runs: 1 }
    const admission = new RunAdmission({
      ...{ limits: { of: () => limits, peek: () => limits }, budgets: { refusal: async () => undefined } },
      ...{ places: new MemoryRunPlaces(() => 0), metrics: new MetricsRegistry(), log: SILENT_LOG },
    })
    const { handle, dispatches, executed } = open({ admission })
    const place = { tenant: TENANT, runId: 'run_1' }
    await admission.admit(place)
    const queue = async (ms: number, n: number) => {
      const dispatch = newDispatch(Date.now(), { deadline_at: new Date(Date.now() + ms).toISOString() })
      await dispatches.create(TENANT, dispatch, { n })
      return { kind: 'batch' as const, tenant: TENANT, id: dispatch.trace_id }
    }
    const [waiting, late, cancelled] = [await queue(60_000, 1), await queue(50, 2), await queue(60_000, 3)]
    const giveWay = new AbortController()
    const given = handle(waiting, giveWay.signal)
    giveWay.abort()
    expect(await given).to.deep.equal({ again: true })
    const handled = [waiting, cancelled].map((job) => handle(job))
    await handle(late)
    expect(await dispatches.get(TENANT, late.id)).to.nested.include({ status: 'error', 'error.code': 'timeout' })
    const result = endBy(newDispatch(0), { type: 'cancelled', executor: null })
    if (result) await dispatches.end(TENANT, cancelled.id, { executor: null, result })
    await handled[1]
    admission.release(place)
    await handled[0]
    expect((await dispatches.get(TENANT, waiting.id))?.status).to.equal('ok')
    expect(executed).to.have.members([1, 2])
    admission.close()
  })

  it('D55: are queued again when their job is lost, and a batch that its last process has not ended is ended', async () => {
    const { start, jobs, work, calls, reconcile, batches, told } = open()
    const id = await start(itemsOf(20))
    const lost = [...jobs.keys()]
    jobs.clear()
    await reconcile()
    expect([...jobs.keys()].filter((each) => each.startsWith(id))).to.deep.equal(lost)
    for (const each of jobs.keys()) if (!each.startsWith(id)) jobs.delete(each)
    const settle = batches.settle.bind(batches)
    batches.settle = async () => false
    await work()
    batches.settle = settle
    expect((await calls.get(TENANT, id)).status).to.equal('running')
    const away = { at: new Date(), tell: () => Promise.reject(new AppError('unavailable', 'the store is away')) }
    expect(await batches.settle(TENANT, id, away).catch(() => 'not told')).to.equal('not told')
    for (let looks = 0; looks < 2; looks++) await reconcile()
    expect((await calls.get(TENANT, id)).status).to.equal('done')
    expect(told.filter(([ended]) => ended === id)).to.deep.equal([[id, 'done']])
  })

  it('D58.2: are queued when calls of theirs have their answers, each chunk and flow once, also where the queue is away; runs wait without a job', async () => {
    const added: string[] = []
    const add = async ({ id }: Job) => {
      if (added.push(id) === 1) throw new AppError('unavailable', 'the queue is away')
    }
    const waves = [1, 1, 2].map((chunk, wave) => ({ batch_id: 'batch_a', chunk, wave }))
    const others = ['trace_a', '0a1b-2c3d'].map((batch_id) => ({ batch_id, chunk: 0, wave: 0 }))
    await queueAnswered({ add })(TENANT, [...waves, ...others])
    expect(added).to.deep.equal(['batch_a-1', 'batch_a-2', 'trace_a'])
  })

  it('D55: a key starts one batch, and another body with it is refused; a batch and its results are its tenant’s', async () => {
    const { calls, jobs, resultsOf } = open()
    const request = { items: itemsOf(3), provider_instance: 'main', model: 'm' }
    const keyed = { subject: 'anna', idempotencyKey: `key-${Math.random()}` }
    const both = await Promise.all([1, 2].map(() => calls.start(TENANT, 'summarize', { request, ...keyed })))
    expect(both[0]?.batch.batch_id).to.equal(both[1]?.batch.batch_id)
    expect(both.map(({ isReplayed }) => isReplayed).toSorted()).to.deep.equal([false, true])
    expect(jobs.size).to.equal(1)
    const other = { ...request, items: itemsOf(4) }
    const refused = await calls
      .start(TENANT, 'summarize', { request: other, ...keyed })
      .catch((cause: unknown) => cause)
    expect(refused).to.include({ kind: 'conflict', code: 'idempotency_mismatch' })
    const id = both[0]?.batch.batch_id ?? ''
    const stranger = tenantId('t_other')
    for (const call of [calls.get(stranger, id), calls.results(stranger, id), calls.cancel(stranger, id)])
      expect(
        await call.then(
          () => undefined,
          (cause: unknown) => cause,
        ),
      ).to.include({ kind: 'not_found' })
    expect(await resultsOf(id)).to.deep.equal([])
  })

  it('D36: a batch that was refused leaves nothing where the store has it all the same, and its key starts another; a stored one is answered', async () => {
    const { calls, batches, jobs, work, reconcile, told, executed } = open()
    const [create, get] = [batches.create.bind(batches), batches.get.bind(batches)]
    const away = new AppError('unavailable', 'the store is away')
    const request = { items: itemsOf(3), provider_instance: 'main', model: 'm' }
    for (const idempotencyKey of [undefined, `key-${Math.random()}`]) {
      const refused: string[] = []
      batches.create = async (...args) => {
        await create(...args)
        refused.push(args[1].batch_id)
        throw away
      }
      const start = () => calls.start(TENANT, 'summarize', { request, subject: 'anna', idempotencyKey })
      expect(await start().catch((cause: unknown) => cause)).to.equal(away)
      const [id = ''] = refused
      await until(async () => (await get(TENANT, id))?.is_refused, { what: 'the batch to be taken back' })
      expect((await calls.list(TENANT, { limit: 200 })).batches.map(({ batch_id }) => batch_id)).not.to.include(id)
      expect(await calls.get(TENANT, id).catch((cause: unknown) => cause)).to.include({ kind: 'not_found' })
      await reconcile()
      for (const each of jobs.keys()) if (!each.startsWith(id)) jobs.delete(each)
      await work()
      expect([executed, await get(TENANT, id), told.some(([ended]) => ended === id)]).to.deep.equal([
        [],
        undefined,
        false,
      ])
      batches.create = create
      batches.get = () => Promise.reject(away)
      const { batch, isReplayed } = await start()
      expect([batch.item_counts.total, isReplayed]).to.deep.equal([3, false])
      batches.get = get
      await calls.cancel(TENANT, batch.batch_id)
      await work()
    }
  })

  it('D55: names that are there twice, items that the store does not take, and instances that are not there, are refused before anything is stored', async () => {
    const { start, jobs } = open()
    const twice = [{ custom_id: '2', input: {} }, { input: {} }]
    for (const [items, extra, param] of [
      [twice, {}, '/items/1/custom_id'],
      [[{ input: {} }, { input: { text: 'x'.repeat(9_000_000) } }], {}, '/items/1'],
      [itemsOf(1), { provider_instance: 'nobody' }, '/provider_instance'],
    ] as const) {
      const refused = await start([...items], extra).catch((cause: unknown) => cause)
      expect(refused).to.include({ kind: 'invalid_request', param })
    }
    expect(jobs.size).to.equal(0)
  })

  it('D55: the sum of what has ended is what the chunks hold', () => {
    const ends = [['ok', 1, 2, 0.5], null, ['expired', 0, 0, 0]] as const
    expect(progressOf(4, [{ ends }, { ends: [null] }])).to.deep.equal({
      item_counts: { total: 4, ended: 2, ok: 1, invalid_output: 0, error: 0, rejected: 0, cancelled: 0, expired: 1 },
      usage: { input_tokens: 1, output_tokens: 2, cost_usd: 0.5 },
    })
  })

  it('D55: run in the turn of batches, as runs that need no reader and name their batch', async () => {
    let seen: FlowExecution | undefined
    let readsBefore: number | undefined
    const execute = async (execution: FlowExecution) => {
      seen = execution
      readsBefore = reads
      return 1
    }
    const { start, work, runs, dispatches } = open({ execute })
    const get = dispatches.get.bind(dispatches)
    let reads = 0
    dispatches.get = (...args) => {
      reads++
      return get(...args)
    }
    const id = await start(itemsOf(1))
    await work()
    expect(readsBefore, 'its record is read once before it begins').to.equal(1)
    expect(seen?.caller).to.deep.equal({ priority: 'batch' })
    const run = runs.get(TENANT, runIdOf(itemTraceId(id, 1)))
    expect([run.needsNoReader, run.metadata]).to.deep.equal([true, { batch_id: id }])
  })
})

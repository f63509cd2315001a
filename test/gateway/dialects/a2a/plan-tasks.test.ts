// Tests plan-tasks.ts, plan-projection.ts and list-tasks.ts: over the routes of a gateway, with the real plan services on a store.
import { mock } from 'node:test'
import { ListTasksResponse, StreamResponse, Task, TaskState } from '@a2a-js/sdk'
import { expect } from 'chai'
import { PlanProjection } from '../../../../services/gateway/dialects/a2a/plan-projection.ts'
import type { RunPage, RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { encodeCursor } from '../../../../shared/kernel/cursor.ts'
import { notFound } from '../../../../shared/kernel/errors.ts'
import type { PlanEvent } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { useFixture } from '../../../support/fixture.ts'
import { tenantId } from '../../../support/tenant.ts'
import { FedStream } from '../../../work/flows/calls/fed-stream.ts'
import { AT, executorOf, stepOf } from '../../../work/plans/calls-setup.ts'
import { CHAIN, openPlanning } from '../../plan-setup.ts'
import { DONE, framesOf, LIVE_RUN, RUN_ID, useGateways } from '../../setup.ts'

type Answer = { result?: { task?: object } & Record<string, unknown>; error?: { code: number; message: string } }

const start = useGateways()
const planning = useFixture(openPlanning)

async function open(options: Parameters<typeof start>[0] = {}) {
  const gateway = await start({ plans: planning().surface, ...options })
  const send = (method: string, params: object) => gateway.post('/a2a', { jsonrpc: '2.0', id: 7, method, params })
  const ask = async (method: string, params: object) => (await (await send(method, params)).json()) as Answer
  const submit = async (message: object = {}) => {
    const given = { messageId: 'm', parts: [], metadata: { plan: CHAIN }, ...message }
    const { result, error } = await ask('SendMessage', { message: given, configuration: { returnImmediately: true } })
    if (error) throw new Error(error.message)
    return Task.fromJSON(result?.task)
  }
  return { ...gateway, send, ask, submit }
}

const planOf = ({ id }: Task): string => `plan_${/^task_plan_([0-9a-f]{32})_/.exec(id)?.[1]}`
const textsOf = ({ artifacts }: Task) =>
  Object.fromEntries(artifacts.map(({ name, parts }) => [name, parts[0]?.content?.value]))

const PLACE = { id: 'msg_1', parent_id: null }

describe('a plan as a task of A2A', () => {
  it('is submitted from metadata or data of a message, and read as its record tells of it', async () => {
    const { ask, submit } = await open()
    const data = { parts: [{ data: CHAIN }], metadata: { plan: true }, contextId: 'with-us' }
    const [task, other] = [await submit(), await submit(data)]
    expect(task.status?.state).to.equal(TaskState.TASK_STATE_SUBMITTED)
    expect([task.contextId, other.contextId]).to.deep.equal([
      task.metadata?.['plan_id'].replace('plan', 'run'),
      'with-us',
    ])
    const executor = executorOf(planning().plans, DEFAULT_TENANT, planOf(task))
    await executor.begin()
    await executor.beginStep('a')
    await executor.endStep('a', 'what a says')
    const read = Task.fromJSON((await ask('GetTask', { id: task.id })).result)
    expect([read.status?.state, textsOf(read)]).to.deep.equal([TaskState.TASK_STATE_WORKING, { a: 'what a says' }])
    expect(read.metadata?.['step_statuses']).to.deep.equal({ a: 'done', b: 'pending' })
    expect(JSON.stringify(read.history)).to.include('"prompt":"do b"')
    await executor.beginStep('b')
    await executor.failStep('b', 'main did not answer')
    await executor.finish()
    const ended = Task.fromJSON((await ask('GetTask', { id: task.id, historyLength: 0 })).result)
    expect([ended.status?.state, ended.history]).to.deep.equal([TaskState.TASK_STATE_FAILED, []])
    expect(JSON.stringify(ended.status?.message)).to.include('b: main did not answer')
    for (const [method, code] of [['CancelTask', -32_002] as const, ['SubscribeToTask', -32_004] as const])
      expect((await ask(method, { id: task.id })).error?.code).to.equal(code)
  })

  it('a stream tells each step once, with what it has written, from wherever it is taken up', async () => {
    const { send, submit } = await open()
    const task = await submit()
    const executor = executorOf(planning().plans, DEFAULT_TENANT, planOf(task))
    await executor.begin()
    await executor.beginStep('a')
    await executor.endStep('a', 'what a says')
    const feed = new FedStream()
    planning().streams.push(feed)
    const read = mock.method(planning().calls, 'get')
    const response = await send('SubscribeToTask', { id: task.id })
    await executor.beginStep('b')
    await executor.endStep('b', 'what b says')
    await executor.finish()
    const step = { plan_id: planOf(task), at: AT }
    const events: PlanEvent[] = [
      { type: 'plan_started', ...step },
      { type: 'step_started', step_id: 'a', ...step },
      { type: 'step_ended', step_id: 'a', status: 'done', ...step },
      { type: 'step_started', step_id: 'b', ...step },
      { type: 'step_ended', step_id: 'b', status: 'done', ...step },
      { type: 'plan_ended', status: 'done', ...step },
    ]
    for (const [i, event] of events.entries()) feed.push({ text: renderFrame(i + 1, event), lastSeq: i + 1 })
    const payloads = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(
      ([, json = '']) => StreamResponse.fromJSON(JSON.parse(json).result).payload,
    )
    expect(payloads.map((each) => each?.$case)).to.deep.equal([
      ...['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate', 'statusUpdate'],
    ])
    const [first, started, written, , last] = payloads
    expect(first?.$case === 'task' && textsOf(first.value)).to.deep.equal({ a: 'what a says' })
    expect(JSON.stringify(started)).to.include('b: running (1 of 2 steps have ended)')
    expect(JSON.stringify(written)).to.include('what b says')
    expect(last?.$case === 'statusUpdate' && [last.value.status?.state, last.value.metadata]).to.deep.include.members([
      TaskState.TASK_STATE_COMPLETED,
    ])
    expect(JSON.stringify(last)).to.include('"usage":{"input_tokens":0')
    const outputs = read.mock.calls.slice(1).map(({ arguments: [, , options] }) => options?.outputsOf)
    expect(outputs, 'the record is read for the ends alone').to.deep.equal([[], ['b'], []])
    read.mock.restore()
  })

  it('is cancelled, and its task is that of the end', async () => {
    const { ask, submit } = await open()
    const task = await submit()
    const cancelled = Task.fromJSON((await ask('CancelTask', { id: task.id })).result)
    expect([cancelled.id, cancelled.status?.state]).to.deep.equal([task.id, TaskState.TASK_STATE_CANCELED])
    expect((await planning().plans.get(DEFAULT_TENANT, planOf(task)))?.status).to.equal('cancelled')
  })

  it('a message of a context is one plan, however often it is sent; the plan of another tenant is unknown', async () => {
    const { submit } = await open()
    const message = { contextId: 'again', messageId: 'm-1' }
    const task = await submit(message)
    expect((await submit(message)).id).to.equal(task.id)
    const other = await open({ identify: async () => ({ tenant: tenantId('acme'), subject: 'ada' }) })
    for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask'])
      expect((await other.ask(method, { id: task.id })).error?.code, method).to.equal(-32_001)
  })

  it('what is wrong with a plan is told with its place, and nothing is submitted', async () => {
    const { ask } = await open()
    const count = planning().jobs.length
    const wrong: [object, RegExp][] = [
      [{ metadata: { plan: { steps: [] } } }, /\/message\/metadata\/plan\/steps/],
      [{ metadata: { plan: true } }, /plan must be a plan, or true/],
      [
        { metadata: { plan: true }, parts: [{ data: { steps: [{ id: 'a' }] } }] },
        /\/message\/parts\/0\/data\/steps\/0/,
      ],
      [{ metadata: { plan: { steps: [stepOf('a', 'b')] } } }, /depends on/],
      [{ metadata: { plan: CHAIN, flow: 'summarize' } }, /left out where flow is set/],
    ]
    for (const [rest, problem] of wrong) {
      const { error } = await ask('SendMessage', { message: { messageId: 'm', parts: [], ...rest } })
      expect(error?.code).to.equal(-32_602)
      expect(error?.message).to.match(problem)
    }
    expect(planning().jobs).to.have.length(count)
  })

  it('where the queue is off the answer is 503', async () => {
    const { send } = await open({ plans: undefined })
    const message = { messageId: 'm', parts: [], metadata: { plan: CHAIN } }
    expect((await send('SendMessage', { message })).status).to.equal(503)
  })

  it('a stream that breaks off ends with an error of the protocol', async () => {
    const { submit } = await open()
    const plan = await planning().calls.get(DEFAULT_TENANT, planOf(await submit()))
    const [cut] = new PlanProjection({ runId: RUN_ID, contextId: 'c', isPlan: true }, plan).cut('slow_consumer')
    expect(cut).to.have.nested.property('error.code', -32_603)
  })
})

describe('ListTasks', () => {
  const run = (digit: string, rest: Partial<RunSummary>): RunSummary => ({
    ...LIVE_RUN,
    ...{ kind: 'message', session_id: 'support-7', run_id: `run_${digit.repeat(32)}`, ...rest },
  })
  const ENDED = { ended_at: '2026-11-21T09:40:00.000Z' }

  /** The pages of `listRuns`, and the filters by which they were asked for. */
  async function listing(pages: RunPage[], options: Parameters<typeof open>[0] = {}) {
    const asked: object[] = []
    const listRuns = async (_tenant: unknown, filter: object) => {
      asked.push(filter)
      return pages.shift() ?? { runs: [], next_cursor: null }
    }
    const gateway = await open({ plans: undefined, methods: { listRuns }, ...options })
    const list = async (params: object) => {
      const { result, error } = await gateway.ask('ListTasks', params)
      return { page: ListTasksResponse.fromJSON(result ?? {}), code: error?.code }
    }
    return { asked, list }
  }
  const statesOf = ({ tasks }: ListTasksResponse) =>
    tasks.map(({ status }) => TaskState[status?.state ?? 0]?.slice('TASK_STATE_'.length))

  it('shows the runs of messages, flows and one-shot runs, each in its state, and no step of a plan', async () => {
    const { list } = await listing([
      {
        runs: [
          run('0', { status: 'waiting', event_count: 0 }),
          run('1', { status: 'waiting' }),
          run('2', {}),
          run('3', { status: 'done', ...ENDED, title: 'Hello' }),
          run('4', { status: 'cancelled', ...ENDED }),
          run('5', { status: 'done', code: 'invalid_output', kind: 'flow', flow: 'sum', ...ENDED }),
          run('6', { status: 'failed', ...ENDED }),
          run('7', { kind: 'step' }),
          run('8', { kind: 'plan' }),
        ],
        next_cursor: null,
      },
    ])
    const { page } = await list({})
    expect(statesOf(page)).to.deep.equal([
      ...['SUBMITTED', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED', 'CANCELED', 'FAILED', 'FAILED'],
    ])
    expect([page.totalSize, page.nextPageToken, page.pageSize]).to.deep.equal([7, '', 50])
    expect(page.tasks[3]).to.deep.include({ id: `task_${'3'.repeat(32)}_support-7`, contextId: 'support-7' })
    expect(page.tasks[3]?.metadata).to.deep.equal({ title: 'Hello' })
  })

  it('pages through the runs and then the plans, and a page token names its place', async () => {
    const { asked, list } = await listing(
      [
        { runs: [run('1', {})], next_cursor: 'next' },
        { runs: [run('2', {})], next_cursor: null },
      ],
      { plans: planning().surface },
    )
    const pages: ListTasksResponse[] = []
    let pageToken = ''
    do {
      const { page } = await list({ pageSize: 100, pageToken })
      pages.push(page)
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    const { plans } = await planning().calls.list(DEFAULT_TENANT, { limit: 200 })
    expect(pages.flatMap(({ tasks }) => tasks.map(({ id }) => id.slice(0, 10)))).to.deep.equal([
      ...['task_11111', 'task_22222', ...plans.map(() => 'task_plan_')],
    ])
    expect(pages.map(({ totalSize }) => totalSize)).to.deep.equal([2, 3, 2 + plans.length])
    expect(asked).to.deep.equal([{ limit: 100 }, { limit: 100, cursor: 'next' }])
  })

  it('filters by context, state and time', async () => {
    const { asked, list } = await listing(
      [
        { runs: [run('1', { status: 'waiting' }), run('2', { status: 'waiting', event_count: 0 })], next_cursor: null },
        { runs: [], next_cursor: null },
        {
          runs: [run('3', { status: 'done', ...ENDED }), run('4', { status: 'done', ended_at: AT })],
          next_cursor: null,
        },
      ],
      { plans: planning().surface },
    )
    const waiting = await list({ contextId: 'support-7', status: 'TASK_STATE_INPUT_REQUIRED' })
    expect(waiting.page.tasks.map(({ id }) => id)).to.deep.equal([`task_${'1'.repeat(32)}_support-7`])
    const failed = await list({ status: 'TASK_STATE_FAILED' })
    const late = await list({ status: 'TASK_STATE_FAILED', pageToken: failed.page.nextPageToken })
    expect(late.page.nextPageToken).to.not.equal('')
    expect(asked).to.deep.equal([
      { limit: 50, status: 'waiting', session_id: 'support-7' },
      { limit: 50, status: 'failed' },
      { limit: 50, code: 'invalid_output' },
    ])
    const none = await list({ status: 'TASK_STATE_AUTH_REQUIRED' })
    expect(none.page).to.deep.include({ tasks: [], pageSize: 50, totalSize: 0 })
    expect(asked).to.have.length(3)
  })

  it('shows artifacts and messages where they are asked for, and the record of a task that has gone meanwhile', async () => {
    const seen: object[] = []
    let failure: Error = notFound('no such run')
    const [there, gone] = [run('1', { status: 'done', ...ENDED }), run('2', { status: 'done', ...ENDED })]
    const { list } = await listing([], {
      methods: {
        listRuns: async (_tenant, { limit }) => {
          expect(limit).to.equal(20)
          return { runs: [there, gone], next_cursor: null }
        },
        getRun: async (_tenant, id) => {
          if (id === gone.run_id) throw failure
          return there
        },
        followRun: async () => framesOf({ type: 'text', text: 'Done.' }, DONE),
        listMessages: async (_tenant, _id, filter) => {
          seen.push(filter)
          const message = { blocks: [{ type: 'text' as const, text: 'Hi' }], run_id: there.run_id, at: AT }
          return { messages: [{ ...PLACE, role: 'user' as const, ...message }], branches: [], next_cursor: null }
        },
      },
    })
    const { page } = await list({ includeArtifacts: true, historyLength: 5 })
    expect(page.tasks.map((task) => [textsOf(task), task.history.length])).to.deep.equal([
      [{ text: 'Done.' }, 1],
      [{}, 0],
    ])
    expect(seen).to.deep.equal([{ limit: 200, runId: there.run_id }])
    const shown = async (params: object) => {
      const [task] = (await list(params)).page.tasks
      return [task?.artifacts.length, task?.history.length]
    }
    expect([await shown({ includeArtifacts: true }), await shown({ historyLength: 1 })]).to.deep.equal([
      [1, 0],
      [0, 1],
    ])
    failure = new Error('broken')
    expect((await list({ historyLength: 1 })).page.tasks).to.deep.equal([])
  })

  it('shows the tasks behind 4 MiB without their artifacts', async () => {
    const runs = ['1', '2', '3'].map((digit) => run(digit, { status: 'done', ...ENDED }))
    const { list } = await listing([], {
      methods: {
        listRuns: async () => ({ runs, next_cursor: null }),
        getRun: async (_tenant, id) => ({ ...LIVE_RUN, run_id: id, ...ENDED }),
        followRun: async () => framesOf({ type: 'text', text: 'x'.repeat(2.5 * 1024 * 1024) }, DONE),
      },
    })
    const { page } = await list({ includeArtifacts: true })
    expect(page.tasks.map(({ artifacts }) => artifacts.length)).to.deep.equal([1, 1, 0])
  })

  it('takes empty fields for none, lists no plans of a context, and begins with the first list for the page of one that is not there', async () => {
    const { asked, list } = await listing([], { plans: planning().surface })
    await list({ contextId: '', status: '', pageToken: '', includeArtifacts: false })
    await list({ status: 'TASK_STATE_UNSPECIFIED', pageSize: 1 })
    expect((await list({ contextId: 'support-7' })).page.nextPageToken).to.equal('')
    const other = await list({ pageToken: encodeCursor(['unfit', 'c', 3]) })
    expect(other.page.totalSize).to.equal(4)
    expect(asked).to.deep.equal([
      { limit: 50 },
      { limit: 1 },
      { limit: 50, session_id: 'support-7' },
      { limit: 50, cursor: 'c' },
    ])
  })

  it('selects by the time of a state, and refuses what it cannot read', async () => {
    const { list } = await listing([
      { runs: [run('3', { status: 'done', ...ENDED }), run('4', { status: 'done', ended_at: AT })], next_cursor: null },
    ])
    const { page } = await list({ statusTimestampAfter: AT })
    expect(page.tasks.map(({ id }) => id)).to.deep.equal([`task_${'4'.repeat(32)}_support-7`])
    const wrong: object[] = [
      ...[
        { contextId: 'a/b' },
        { status: 'WORKING' },
        { pageSize: 0 },
        { pageSize: 101 },
        { pageSize: '5' },
        { pageSize: 1.5 },
        { pageToken: 'x' },
      ],
      ...[{ statusTimestampAfter: 'today' }, { historyLength: -1 }, { includeArtifacts: 1 }],
    ]
    for (const params of wrong) expect((await list(params)).code, JSON.stringify(params)).to.equal(-32_602)
  })
})

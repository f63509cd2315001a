// Tests tasks.ts and run-tasks.ts: what the messages of a client do, and the tasks that it gets.
import { expect } from 'chai'
import { taskId } from '../../../../services/gateway/dialects/a2a/task-id.ts'
import type { FlowSurface } from '../../../../services/gateway/routes/flows/flows.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { Scope } from '../../../../shared/tenancy/auth/port.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, RUN_ID, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const ID = taskId({ runId: RUN_ID, contextId: 's' })
const ASKED = [of.turn(1), of.call('c'), of.asked(PERMISSION_ID, 'c')]
const REST = [of.resolved(PERMISSION_ID, 'c'), of.result('c'), ...of.said('bye'), DONE]
type Result = JsonObject & {
  task?: Result
  id?: string
  history?: object[]
  status?: { state: string }
  artifacts?: JsonObject[]
}

describe('a message to an agent over A2A', () => {
  const start = useGateways({ perTest: false })
  const calls: unknown[] = []
  let events: AgentEvent[]
  let run: Partial<RunSummary>
  let scopes: Scope[]
  let post: Awaited<ReturnType<typeof start>>['post']
  before(async () => {
    const methods: Partial<Broker> = {
      async sendMessage(_tenant, id, { background: _b, priority: _p, if_waiting: _i, ...message }) {
        calls.push(['send', id, message])
        return { runId: RUN_ID, frames: framesOf(...events) }
      },
      getRun: async () => ({ ...LIVE_RUN, event_count: events.length, ...run }),
      followRun: async () => framesOf(...events),
      replyPermission: async (_tenant, scope, id, { allow }) => void calls.push(['reply', scope, id, allow]),
      async cancelRun(_tenant, id) {
        calls.push(['cancel', id])
        events = [...ASKED, of.cancelled]
      },
      listMessages: async () => ({
        messages: ['one', 'two'].map((text) => ({
          ...{ id: `msg_${text}`, parent_id: null, role: 'user' as const, run_id: RUN_ID, at: LIVE_RUN.started_at },
          blocks: [{ type: 'text' as const, text }],
        })),
        ...{ branches: [], next_cursor: null },
      }),
    }
    const flows = {
      library: { published: async (_tenant: unknown, name: string) => ({ name, definition: { model: 'own' } }) },
      execution: {
        calls: {
          start: async (_tenant: unknown, name: string, { request, idempotencyKey }: JsonObject) => {
            calls.push(['flow', name, request, idempotencyKey !== undefined])
            const result = { type: 'result', verdict: 'ok', output: { n: 2 } } as unknown as AgentEvent
            return { traceId: `trace_${RUN_ID.slice('run_'.length)}`, frames: async () => framesOf(result) }
          },
        },
      },
    } as unknown as FlowSurface
    const config = { settings: { engine: async () => ({ routing: { main: { instance: 'i', model: 'm' } } }) } } as never
    const identify = async () => ({ tenant: DEFAULT_TENANT, subject: 'ada', scopes: new Set(scopes) })
    post = (await start({ methods, flows, config, identify })).post
  })
  beforeEach(() => {
    calls.length = 0
    events = [...of.said('Hello.'), DONE]
    run = {}
    scopes = ['run', 'read', 'approve']
  })

  const send = (method: string, params: object) => post('/a2a', { jsonrpc: '2.0', id: 7, method, params })
  const ask = async (method: string, params: object) => {
    const response = await send(method, params)
    const { result = {}, error } = (await response.json()) as { result?: Result; error?: { code: number } }
    return { response, result, error }
  }
  const message = (fields: object = {}) => ({
    message: { messageId: 'm', contextId: 's', parts: [{ text: 'hi' }], ...fields },
  })
  const stateOf = ({ status }: Result = {}) => status?.state

  it('D31.9a: is sent to the session of its context, or begins one, and answers with the task of its end', async () => {
    const { response, result } = await ask('SendMessage', message())
    expect(calls).to.deep.equal([['send', 's', { prompt: 'hi' }]])
    expect(response.headers.get('x-run-id')).to.equal(RUN_ID)
    expect(result.task).to.containSubset({ id: ID, contextId: 's', status: { state: 'TASK_STATE_COMPLETED' } })
    expect(result.task).to.not.have.property('history')
    const { result: begun } = await ask('SendMessage', message({ contextId: undefined }))
    expect(begun.task?.['contextId']).to.match(/^sess_/)
  })

  it('D31.9a: has as many messages as are asked for, and answers at once where that is asked for', async () => {
    const configuration = { historyLength: 1 }
    expect((await ask('SendMessage', { ...message(), configuration })).result.task?.history).to.have.length(1)
    const { result } = await ask('SendMessage', { ...message(), configuration: { returnImmediately: true } })
    expect([stateOf(result.task), result.task?.artifacts]).to.deep.equal(['TASK_STATE_WORKING', []])
    expect((await ask('GetTask', { id: ID, historyLength: 2 })).result.history).to.have.length(2)
    expect((await ask('GetTask', { id: ID, historyLength: 0 })).result).to.not.have.property('history')
  })

  it('D31.9a: runs the flow that it names on the main route, once for each message of a context', async () => {
    for (const [contextId, hasKey] of [
      ['s', true],
      [undefined, false],
    ] as const) {
      const { response, result } = await ask('SendMessage', message({ contextId, metadata: { flow: 'total' } }))
      expect(calls.at(-1)).to.deep.equal(['flow', 'total', { input: { text: 'hi' }, provider_instance: 'i' }, hasKey])
      expect(response.headers.get('x-trace-id')).to.match(/^trace_/)
      expect(result.task).to.containSubset({
        contextId: contextId ?? RUN_ID,
        artifacts: [{ parts: [{ data: { n: 2 } }] }],
      })
    }
  })

  it('D31.9b: to a task that waits is its answer, and the response begins behind it', async () => {
    events = [...ASKED, ...REST]
    run = { event_count: ASKED.length }
    const reply = async () => {
      const response = await send('SendMessage', message({ taskId: ID, parts: [{ text: 'allow' }] }))
      return (await response.json()) as { result?: { task: Result }; error?: { code: number } }
    }
    scopes = ['run', 'read']
    expect((await send('SendMessage', message({ taskId: ID }))).status).to.equal(403)
    scopes = ['run', 'approve']
    expect((await reply()).result?.task).to.containSubset({ status: { state: 'TASK_STATE_COMPLETED' } })
    expect(calls).to.deep.equal([['reply', 's', PERMISSION_ID, true]])
    events = [of.turn(1), of.call('c')]
    run = {}
    expect((await reply()).error?.code, 'it asks nothing').to.equal(-32_004)
    events = [of.turn(1), DONE]
    run = { ended_at: LIVE_RUN.started_at }
    expect((await reply()).error?.code, 'it has ended').to.equal(-32_004)
  })

  it('D31.9c: is followed as the task and its updates, from its beginning or from where it is', async () => {
    const typesOf = async (method: string, params: object) =>
      [...(await (await send(method, params)).text()).matchAll(/"result":\{"(\w+)"/g)].map(([, type]) => type)
    const update = 'artifactUpdate'
    expect(await typesOf('SendStreamingMessage', message())).to.deep.equal(['task', update, update, 'statusUpdate'])
    events = [of.turn(1), ...of.said('a', 'b'), DONE]
    const all = ['task', update, update, update, 'statusUpdate']
    expect(await typesOf('SendStreamingMessage', message())).to.deep.equal(all)
    run = { event_count: 2 }
    expect(await typesOf('SubscribeToTask', { id: ID })).to.deep.equal(['task', update, update, 'statusUpdate'])
  })

  it('D31.9c: is cancelled, and a token that may not read gets the state of the task alone', async () => {
    for (const [given, keys] of [
      [['run'], ['id', 'contextId', 'status']],
      [
        ['run', 'read'],
        ['id', 'contextId', 'status', 'artifacts'],
      ],
    ] as const) {
      ;[events, scopes] = [ASKED, [...given]]
      const { result } = await ask('CancelTask', { id: ID })
      expect([stateOf(result), Object.keys(result)]).to.deep.equal(['TASK_STATE_CANCELED', keys])
    }
    expect(calls).to.deep.equal([1, 2].map(() => ['cancel', RUN_ID]))
  })

  it('D54: a run that waits for room is a task that was submitted', async () => {
    run = { status: 'waiting', event_count: 0 }
    events = []
    const stateNow = async () => stateOf((await ask('GetTask', { id: ID })).result)
    expect(await stateNow()).to.equal('TASK_STATE_SUBMITTED')
    run = { event_count: 0 }
    expect(await stateNow(), 'one that has begun').to.equal('TASK_STATE_WORKING')
    ;[events, run] = [ASKED, { status: 'waiting' }]
    expect(await stateNow(), 'one that waits for an answer').to.equal('TASK_STATE_INPUT_REQUIRED')
  })

  it('D31.9e: a run that has failed keeps the texts that it has written', async () => {
    events = [...of.said('half'), of.failed]
    run = { status: 'failed', ended_at: LIVE_RUN.started_at }
    const { result } = await ask('GetTask', { id: ID })
    expect([stateOf(result), result.artifacts?.length]).to.deep.equal(['TASK_STATE_FAILED', 1])
  })
})

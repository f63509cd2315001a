// Tests task-projection.ts, message.ts, task-id.ts, tasks.ts, run-tasks.ts, history.ts and a2a-routes.ts: over the routes of a gateway, and by the package's own decoder.
import { Role, StreamResponse, Task, TaskState } from '@a2a-js/sdk'
import { expect } from 'chai'
import { listedPlan, listedRun } from '../../../../services/gateway/dialects/a2a/listed-task.ts'
import {
  inputOf,
  keyOf,
  promptOf,
  readAnswers,
  readMessage,
} from '../../../../services/gateway/dialects/a2a/message.ts'
import type { RpcAnswer } from '../../../../services/gateway/dialects/a2a/rpc.ts'
import { readTaskId, taskId } from '../../../../services/gateway/dialects/a2a/task-id.ts'
import { TaskProjection } from '../../../../services/gateway/dialects/a2a/task-projection.ts'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import { readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import type { AgentEvent, JsonObject } from '../../../../shared/kernel/events.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const REF = { runId: of.RUN, contextId: 'support-7' }
const projection = (since?: number) => new TaskProjection(REF, since === undefined ? {} : { since })

/** The answers as the package's own decoder reads them. */
const decoded = (answers: RpcAnswer[]) =>
  answers.map((answer) => StreamResponse.fromJSON('result' in answer ? answer.result : {}).payload)

type Part = NonNullable<Parameters<typeof of.respond>[2]>
const updatesOf = (events: AgentEvent[], part?: Part, since?: number) =>
  decoded(of.respond(projection(since), events, part).chunks)

const statesOf = (updates: ReturnType<typeof decoded>) =>
  updates.flatMap((each) => (each?.$case === 'statusUpdate' ? [each.value.status?.state] : []))

describe("a run as a task of A2A, read by the package's own decoder", () => {
  it('a response ends where all waits, with every request, and the next one begins behind it with the task', () => {
    const first = updatesOf(of.WITH_SUB_AGENT)
    expect(first[0]?.$case).to.equal('task')
    const last = first.at(-1)
    expect(statesOf(first).at(-1)).to.equal(TaskState.TASK_STATE_INPUT_REQUIRED)
    expect(JSON.stringify(last)).to.include('perm_1').and.include('perm_2')
    const rest = updatesOf(of.WITH_SUB_AGENT, { known: new Set(['perm_1', 'perm_2']), passed: 99 }, Infinity)
    expect(rest[0]?.$case === 'task' && rest[0].value.artifacts[0]?.parts[0]?.content?.value).to.equal('I write.')
    expect(statesOf(rest).at(-1)).to.equal(TaskState.TASK_STATE_COMPLETED)
  })

  it('a task that is read until now is as its updates have made it, and says what it waits for', () => {
    const at = of.WITH_SUB_AGENT.findIndex(({ type }) => type === 'permission_resolved')
    const task = projection()
    of.respond(task, of.WITH_SUB_AGENT.slice(0, at), { passed: Infinity })
    expect(Task.fromJSON(task.task).status?.state).to.equal(TaskState.TASK_STATE_INPUT_REQUIRED)
    expect(task.asked).to.deep.equal(['perm_1', 'perm_2'])
    const whole = projection()
    of.respond(whole, of.WITH_SUB_AGENT, { passed: Infinity })
    expect(Task.fromJSON(whole.task).status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
    expect(whole.asked).to.deep.equal([])
  })

  it('D37.1: the task of a run that ended while it asked has ended and asks nothing, also when the run was lost with its worker', () => {
    const asking = [of.turn(1), of.call('a'), of.asked('p', 'a')]
    const stop = of.resolved('p', 'a', { allow: false })
    for (const [events, state] of [
      [[...asking, stop, of.cancelled], TaskState.TASK_STATE_CANCELED],
      [[...asking, of.cancelled], TaskState.TASK_STATE_CANCELED], // As an older release has recorded it.
      [[...asking, of.lost], TaskState.TASK_STATE_FAILED],
    ] as const) {
      const task = projection()
      of.respond(task, [...events], { passed: Infinity })
      expect([Task.fromJSON(task.task).status?.state, task.asked]).to.deep.equal([state, []])
    }
  })

  it('a stream that is taken up again begins with the task as it is, also when the run has ended meanwhile', () => {
    const updates = updatesOf(of.WITH_SUB_AGENT, { passed: 9 }, 8)
    expect(updates[0]?.$case === 'task' && updates[0].value.artifacts).to.have.length(1)
    const ended = updatesOf([of.turn(1), of.done], { passed: 99 }, 98)
    expect(ended).to.have.length(1)
    expect(ended[0]?.$case === 'task' && ended[0].value.status?.state).to.equal(TaskState.TASK_STATE_COMPLETED)
  })

  it('D32.7a: the text of a turn that begins anew is taken back, and is no part of the task', () => {
    const updates = updatesOf(of.RECOVERED).flatMap((each) => (each?.$case === 'artifactUpdate' ? [each.value] : []))
    const shown = updates.map(({ artifact, append }) => [
      artifact?.artifactId,
      artifact?.parts[0]?.content?.value,
      append,
    ])
    const [begun, taken, again] = shown
    expect(taken).to.deep.equal([begun?.[0], '', false])
    expect(again?.slice(1)).to.deep.equal(['I write.', false])
    expect(again?.[0]).to.not.equal(begun?.[0])
    const task = projection()
    of.respond(task, of.RECOVERED)
    expect(Task.fromJSON(task.task).artifacts.map(({ artifactId }) => artifactId)).to.deep.equal([again?.[0]])
  })

  it('D32.7a: the rest of a complete turn that comes without its deltas goes on in the same artifact', () => {
    const shown = updatesOf(of.REST).flatMap((each) =>
      each?.$case === 'artifactUpdate' ? [[each.value.artifact?.parts[0]?.content?.value, each.value.append]] : [],
    )
    expect(shown.slice(0, 2)).to.deep.equal([
      ['I re', false],
      ['ad.', true],
    ])
    const task = projection()
    of.respond(task, of.REST)
    const texts = Task.fromJSON(task.task).artifacts.map(({ parts }) => parts[0]?.content?.value)
    expect(texts).to.deep.equal(['I read.', 'I write.'])
  })
})

describe('a task of a list', () => {
  const [created_at, started_at, ended_at] = ['1', '2', '3'].map((hour) => `2026-11-21T0${hour}:00:00.000Z`) as [
    string,
    string,
    string,
  ]
  const ref = { runId: of.RUN, contextId: of.RUN }

  it('D31.9e: of a run has its title and its flow, and its own context without a session', () => {
    const state = 'WORKING'
    const run = { ...LIVE_RUN, run_id: of.RUN, started_at }
    expect(listedRun(run)).to.deep.equal({ ref, state, timestamp: started_at, metadata: {} })
    const flow = listedRun({
      ...run,
      session_id: 's',
      title: 'T',
      flow: 'total',
      ended_at,
      status: 'done',
      code: 'invalid_output',
    })
    expect(flow).to.deep.equal({
      ref: { ...ref, contextId: 's' },
      state: 'FAILED',
      timestamp: ended_at,
      metadata: { title: 'T', flow: 'total' },
    })
  })

  it('D31.9e: of a plan has its title, and the time of its newest state', () => {
    const plan = {
      id: `plan_${of.RUN.slice('run_'.length)}`,
      status: 'queued',
      created_at,
      started_at: null,
      ended_at: null,
    }
    const listed = (fields: object) => listedPlan({ ...plan, ...fields } as unknown as Parameters<typeof listedPlan>[0])
    const metadata = { plan_id: plan.id }
    expect(listed({})).to.deep.equal({
      ref: { ...ref, isPlan: true },
      state: 'SUBMITTED',
      timestamp: created_at,
      metadata,
    })
    expect(listed({ started_at, title: 'T' })).to.deep.include({
      timestamp: started_at,
      metadata: { ...metadata, title: 'T' },
    })
    expect(listed({ started_at, ended_at })).to.include({ timestamp: ended_at })
  })
})

describe('the ids and answers of A2A', () => {
  it('the id of a task names its run and context, and no other text is one', () => {
    expect(readTaskId(taskId(REF))).to.deep.equal(REF)
    for (const id of ['', 'task_x', `${taskId(REF)}/..`]) expect(() => readTaskId(id)).to.throw(/no task/)
  })

  const read = (message: JsonObject) => readMessage(new Fields({ message: { messageId: 'm', parts: [], ...message } }))
  const answersTo = (...parts: JsonObject[]) => readAnswers(read({ parts }), ['perm_1', 'perm_2'])
  const allOf = (answer: object) => ['perm_1', 'perm_2'].map((id) => ({ id, ...answer }))

  it('D31.9b: the answers are objects with ids, or one word for all; another text is refused', () => {
    const data = (answer: object) => [{ data: { permissions: [{ id: PERMISSION_ID, ...answer }] } }]
    const rows: [parts: JsonObject[], answers: object[]][] = [
      [[{ text: 'Allow' }], allOf({ allow: true })],
      [[{ text: 'allow: fine' }], allOf({ allow: true })],
      [[{ text: 'DENY' }], allOf({ allow: false })],
      [[{ text: 'deny: too late\nand dear' }], allOf({ allow: false, reason: 'too late\nand dear' })],
      [[{ text: 'deny:no' }], allOf({ allow: false, reason: 'no' })],
      [[{ text: 'deny:  no' }], allOf({ allow: false, reason: 'no' })],
      [data({ allow: true, reason: '' }), [{ id: PERMISSION_ID, allow: true }]],
      [data({ allow: true, input: { path: 'b' } }), [{ id: PERMISSION_ID, allow: true, input: { path: 'b' } }]],
      [data({ allow: false, input: {}, reason: 'no' }), [{ id: PERMISSION_ID, allow: false, reason: 'no' }]],
    ]
    for (const [parts, answers] of rows) expect(answersTo(...parts), JSON.stringify(parts)).to.deep.equal(answers)
    const wrong = [
      [{ text: 'sure' }],
      [{ text: 'deny:' }],
      [{ text: 'allow them' }],
      [{ text: 'I deny' }],
      data({ id: 'x', allow: true }),
      data({}),
    ]
    for (const parts of wrong) expect(() => answersTo(...parts), JSON.stringify(parts)).to.throw(/must be/)
  })

  const FILE = { raw: 'aGk=', mediaType: 'text/plain' }
  const ROWS: [what: string, message: JsonObject, prompt: string, input: object, rest?: object][] = [
    ['texts', { parts: [{ text: ' one' }, { text: 'two ' }] }, 'one\n\ntwo', { text: 'one\n\ntwo' }],
    ['an object', { parts: [{ text: 'sum' }, { data: { n: 1 } }] }, 'sum\n\n{"n":1}', { n: 1 }],
    ['an object alone', { parts: [{ data: { n: 1 } }] }, '{"n":1}', { n: 1 }],
    ['a file alone', { parts: [FILE] }, '', { text: '' }],
    [
      'empty ids',
      { contextId: '', taskId: '', parts: [{ text: 'a' }] },
      'a',
      { text: 'a' },
      { contextId: undefined, taskId: undefined },
    ],
    [
      'ids',
      { contextId: 'c', taskId: 't', parts: [{ text: 'a' }] },
      'a',
      { text: 'a' },
      { contextId: 'c', taskId: 't' },
    ],
    [
      'a flow',
      { metadata: { flow: 'total' }, parts: [{ text: 'a' }] },
      'a',
      { text: 'a' },
      { flow: 'total', plan: undefined },
    ],
  ]
  for (const [what, message, prompt, input, rest = {}] of ROWS)
    it(`D31.9a: a message with ${what} is read as a prompt and as the input of a flow`, () => {
      const incoming = read(message)
      expect([promptOf(incoming), inputOf(incoming)]).to.deep.equal([prompt, input])
      expect(incoming).to.deep.include({ messageId: 'm', ...rest })
    })

  it('D31.9a: a message is refused at the place of what is wrong', () => {
    const rows: [message: JsonObject, param: string][] = [
      [{ messageId: null }, '/message/messageId'],
      [{ contextId: 'a/b' }, '/message/contextId'],
      [{ metadata: { flow: 'a b' } }, '/message/metadata/flow'],
      [{ metadata: { flow: 'total' }, parts: [FILE] }, '/message/parts'],
      [{ metadata: { plan: {} }, parts: [FILE] }, '/message/parts'],
      [{ metadata: { flow: 'total', plan: {} } }, '/message/metadata/plan'],
      [{ metadata: { plan: true } }, '/message/metadata/plan'],
      [{}, '/message/parts'],
    ]
    for (const [message, param] of rows)
      expect(() => promptOf(read(message)), JSON.stringify(message))
        .to.throw()
        .with.property('param', param)
  })

  it('D25a: a message of a context is known by its id there, and another one by the key of its request', () => {
    const req = { headers: { 'idempotency-key': 'k' }, headersDistinct: { 'idempotency-key': ['k'] } } as never
    const keys = [{ contextId: 'c' }, { contextId: 'd' }, { contextId: 'c', messageId: 'n' }, { contextId: 'c' }].map(
      (each) => keyOf(req, read(each)),
    )
    expect(keyOf(req, read({}))).to.equal('k')
    expect(new Set(keys).size).to.equal(3)
    expect(keys[3]).to.equal(keys[0])
  })
})

const messageOf = (role: 'user' | 'assistant', text: string, runId: string | null = of.RUN) => ({
  ...{ id: `msg_${text}`, parent_id: null },
  ...{ role, blocks: [{ type: 'text' as const, text }], run_id: runId, at: '2026-11-21T09:30:00.000Z' },
})

describe('POST /a2a', () => {
  const start = useGateways({ perTest: false })

  it('D31.9d: what is wrong with a message is an error of JSON-RPC with its id', async () => {
    const { post } = await start()
    const request = (method: string, params: unknown = {}) => ({ jsonrpc: '2.0', id: 7, method, params })
    const message = { messageId: 'm', parts: [{ text: 'hi' }] }
    const errors: [object, number, Record<string, string>?][] = [
      [{ id: 7 }, -32_600],
      [{ id: 7, jsonrpc: '1.0', method: 'GetTask' }, -32_600],
      [{ id: 7, jsonrpc: '2.0', method: 7 }, -32_600],
      [request('GetTask', 'x'), -32_602],
      [request('message/send'), -32_601],
      [request('SendMessage'), -32_602],
      [request('SendMessage', []), -32_602],
      [request('SendMessage', { message: { ...message, parts: [] } }), -32_602],
      [request('SendMessage', { message: { ...message, contextId: 'a/b' } }), -32_602],
      [request('SendMessage', { message: { ...message, parts: [{ url: 'x' }], metadata: { flow: 'main' } } }), -32_602],
      [request('GetTask', { id: 'x' }), -32_001],
      [request('CreateTaskPushNotificationConfig'), -32_003],
      [request('GetExtendedAgentCard'), -32_004],
      [request('GetTask'), -32_009, { 'a2a-version': '0.3' }],
    ]
    for (const [body, code, headers] of errors) {
      const response = await post('/a2a', body, headers)
      const answer = (await response.json()) as { id: number; error?: { code: number } }
      expect([response.status, answer.id, answer.error?.code], JSON.stringify(body)).to.deep.equal([200, 7, code])
    }
  })

  it('D31.9d: an answer has the id of its request where that is a text or a number, and a failure of this server is none of the protocol', async () => {
    const { post } = await start({
      methods: { sendMessage: async () => Promise.reject(new AppError('conflict', 'it is busy')) },
    })
    for (const [id, shown] of [
      ['x', 'x'],
      [0, 0],
      [{}, null],
      [true, null],
      [undefined, null],
    ] as const) {
      const answer = (await (await post('/a2a', { jsonrpc: '2.0', id, method: 'GetTask' })).json()) as { id: unknown }
      expect(answer.id, JSON.stringify(id)).to.equal(shown)
    }
    const message = { messageId: 'm', contextId: 's', parts: [{ text: 'hi' }] }
    const refused = await post('/a2a', { jsonrpc: '2.0', id: 7, method: 'SendMessage', params: { message } })
    expect(refused.status).to.equal(409)
  })

  it('D31.9c: has the newest 100 messages of the first 8 pages of its session, and none of one that has gone', async () => {
    const run = { ...LIVE_RUN, status: 'done' as const, ended_at: LIVE_RUN.started_at, event_count: 1 }
    let failure: Error | undefined
    let count = 0
    const listMessages: Broker['listMessages'] = async () => {
      if (failure) throw failure
      const messages = Array.from({ length: 20 }, () => messageOf('user', `${++count}`))
      return { messages, branches: [], next_cursor: 'more' }
    }
    const { post } = await start({
      methods: { getRun: async () => run, followRun: async () => framesOf(DONE), listMessages },
    })
    const get = (params: object = {}) =>
      post('/a2a', { jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id: taskId(REF), ...params } })
    const historyOf = async (params?: object) => {
      count = 0
      const { result } = (await (await get(params)).json()) as { result: { history: { parts: object[] }[] } }
      return result.history.map(({ parts }) => parts)
    }
    const newest = Array.from({ length: 100 }, (_, i) => [{ text: `${i + 61}` }])
    for (const params of [{}, { historyLength: 150 }]) expect(await historyOf(params)).to.deep.equal(newest)
    failure = notFound('no session')
    expect(await historyOf()).to.deep.equal([])
    failure = new Error('broken')
    expect((await get()).status).to.equal(500)
  })

  it('D31.9c: a task that has ended is read as it ended; it is neither cancelled nor followed, and takes no answer', async () => {
    const cancelled: string[] = []
    const { post } = await start({
      methods: {
        getRun: async () => ({ ...LIVE_RUN, status: 'done', ended_at: LIVE_RUN.started_at, event_count: 2 }),
        followRun: async () => framesOf({ type: 'text', text: 'Done.' }, DONE),
        cancelRun: async (_tenant, runId) => void cancelled.push(runId),
        listMessages: async (_tenant, _id, { cursor }) => ({
          messages:
            cursor === undefined
              ? [messageOf('user', 'Before', null), messageOf('user', 'Hi')]
              : [messageOf('assistant', 'Done.')],
          branches: [],
          next_cursor: cursor === undefined ? 'more' : null,
        }),
      },
    })
    const id = taskId(REF)
    const ask = async (method: string, params: object) => {
      const response = await post('/a2a', { jsonrpc: '2.0', id: 7, method, params })
      return (await response.json()) as { result?: unknown; error?: { code: number } }
    }
    const task = Task.fromJSON((await ask('GetTask', { id })).result)
    expect([task.id, task.contextId, task.status?.state]).to.deep.equal([
      id,
      REF.contextId,
      TaskState.TASK_STATE_COMPLETED,
    ])
    expect(task.history.map(({ role, parts }) => [role, parts[0]?.content?.value])).to.deep.equal([
      [Role.ROLE_USER, 'Hi'],
      [Role.ROLE_AGENT, 'Done.'],
    ])
    expect(Task.fromJSON((await ask('GetTask', { id, historyLength: 1 })).result).history).to.have.length(1)
    expect((await ask('GetTask', { id, historyLength: 0.5 })).error?.code).to.equal(-32_602)
    const message = { messageId: 'm', taskId: id, contextId: REF.contextId, parts: [{ text: 'allow' }] }
    const refused = [
      await ask('CancelTask', { id }),
      await ask('SubscribeToTask', { id }),
      await ask('SendMessage', { message }),
    ]
    expect(refused.map(({ error }) => error?.code)).to.deep.equal([-32_002, -32_004, -32_004])
    expect(cancelled).to.deep.equal([])
  })

  it('D31.9e: a task whose events are not kept any more is as its record tells of it', async () => {
    const { post } = await start({
      methods: {
        getRun: async () => ({ ...LIVE_RUN, status: 'done', ended_at: LIVE_RUN.started_at, event_count: 2 }),
        followRun: async () => framesOf(readerFailure('stream_gap')),
      },
    })
    const params = { id: taskId(REF), historyLength: 0 }
    const response = await post('/a2a', { jsonrpc: '2.0', id: 7, method: 'GetTask', params })
    const { result } = (await response.json()) as { result: unknown }
    expect(Task.fromJSON(result).status).to.deep.include({
      ...{ state: TaskState.TASK_STATE_COMPLETED, timestamp: LIVE_RUN.started_at },
    })
  })

  it('D31.9a: the card says what there is: conversations, plans where these are on, and the flows that run', async () => {
    const flow = { name: 'total', uid: 'u', state: 'published', version: 1, kept_version: null }
    const definition = { input_schema: { description: 'Adds up.' }, output_schema: {} }
    const library = { list: async () => ({ flows: [flow], next_cursor: null }), definitionOf: async () => definition }
    const cardOf = async (deps: object) =>
      (await (await (await start(deps)).get('/.well-known/agent-card.json')).json()) as Record<string, unknown> & {
        skills: JsonObject[]
      }
    const plain = await cardOf({})
    expect(plain).to.deep.include({
      ...{ name: 'agent-engine', signatures: [], securitySchemes: {}, securityRequirements: [] },
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    })
    expect(plain.skills.map(({ id }) => id)).to.deep.equal(['conversation'])
    const { skills } = await cardOf({ plans: {}, flows: { library } })
    const json = ['application/json']
    expect(skills.slice(1)).to.containSubset([
      { id: 'agent-engine.plan', inputModes: json },
      {
        id: 'total',
        name: 'total',
        description: 'Adds up.',
        tags: ['flow'],
        examples: [],
        inputModes: json,
        outputModes: json,
        securityRequirements: [],
      },
    ])
  })

  it('D31.9a: the card names the address by which the client has reached it, and the credentials', async () => {
    const { get, url } = await start({ authentication: 'api-token' })
    const card = (await (await get('/.well-known/agent-card.json')).json()) as Record<string, unknown>
    expect(card['supportedInterfaces']).to.deep.equal([
      { url: `${url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
    ])
    expect(card['securityRequirements']).to.deep.equal([{ schemes: { bearer: { list: [] } } }])
  })
})

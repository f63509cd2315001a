import { expect } from 'chai'
import type { RunRequest } from '../../shared/cluster/commands/runs.ts'
import type { SignedReply } from '../../shared/cluster/permissions/reply.ts'
import { AppError, conflict, notFound, tooMany } from '../../shared/kernel/errors.ts'
import { NO_TOOLS } from '../support/app-defaults.ts'
import { useContract } from './described.ts'
import { sessionOf } from './session-of.ts'
import { DONE, framesOf, PERMISSION_ID, RUN_ID, refusalOf, useGateways } from './setup.ts'

const SESSION = sessionOf('s-1', { message_count: 2, title: 'Hello' })

describe('the resources', () => {
  const start = useGateways()
  const described = useContract()

  it('api.md Endpoints: GET /health is 200 with ok and the time in UTC', async () => {
    const response = await (await start()).get('/health')
    const { status, timestamp } = (await described('GET', '/health', response)) as { status: string; timestamp: string }
    expect(status).to.equal('ok')
    expect(Math.abs(Date.parse(timestamp) - Date.now())).to.be.lessThan(5_000)
  })

  it('api.md Endpoints: GET /tools lists the tools by name, description and input schema, with their count', async () => {
    const inputSchema = { type: 'object', properties: { path: { type: 'string' } } }
    const { get } = await start({
      toolBox: { ...NO_TOOLS, tools: [{ name: 'Read', description: 'Reads.', inputSchema }] },
    })
    expect(await described('GET', '/tools', await get('/tools'))).to.deep.equal({
      tools: [{ name: 'Read', description: 'Reads.', input_schema: inputSchema }],
      count: 1,
    })
  })

  it('D5.2: GET /tools has the title and the hints of a tool of an MCP server, and which servers are starting', async () => {
    const tool = {
      name: 'mcp__a__b',
      title: 'B',
      description: 'Does b.',
      inputSchema: {},
      hints: { destructive: true },
    }
    const servers = () => [{ name: 'a', state: 'starting' as const }]
    const { get } = await start({ toolBox: { ...NO_TOOLS, tools: [tool], servers } })
    expect(await described('GET', '/tools', await get('/tools'))).to.deep.equal({
      tools: [{ name: 'mcp__a__b', title: 'B', description: 'Does b.', input_schema: {}, hints: tool.hints }],
      count: 1,
      mcp_servers: servers(),
    })
  })

  it('api.md Endpoints: POST /sessions is 201 with the id and the time, with and without a body', async () => {
    const asked: (string | undefined)[] = []
    const { post } = await start({
      methods: {
        async createSession(_tenant, id) {
          asked.push(id)
          return SESSION
        },
      },
    })
    for (const body of [undefined, {}, { session_id: 's-1' }, { session_id: 's-1', other: null }]) {
      const response = await post('/sessions', body)
      expect(response.status).to.equal(201)
      const { session_id, created_at } = SESSION
      expect(await described('POST', '/sessions', response)).to.deep.equal({ session_id, created_at })
    }
    expect(asked).to.deep.equal([undefined, undefined, 's-1', 's-1'])
  })

  it('D23: sessions and their messages are listed by page, and PATCH renames a session', async () => {
    const asked: unknown[] = []
    const message = { role: 'user' as const, blocks: [{ type: 'text' as const, text: 'hi' }], run_id: RUN_ID }
    const messages = [{ id: 'msg_1', parent_id: null, ...message, at: '2026-11-22T09:30:00.000Z' }]
    const { get, url } = await start({
      methods: {
        listSessions: async (_tenant, page) => {
          asked.push(page)
          return { sessions: [SESSION], next_cursor: 'abc' }
        },
        listMessages: async (_tenant, id, page) => {
          asked.push(id, page)
          return { messages, branches: ['msg_1'], next_cursor: null }
        },
        renameSession: async (_tenant, id, title) => ({ ...SESSION, session_id: id, title }),
      },
    })
    const list = await described('GET', '/sessions', await get('/sessions?limit=7&cursor=xyz'))
    expect(list).to.deep.equal({ sessions: [SESSION], next_cursor: 'abc' })
    const history = await described('GET', '/sessions/{id}/messages', await get('/sessions/s-1/messages'))
    expect(history).to.deep.equal({ messages, branches: ['msg_1'], next_cursor: null })
    expect((await get('/sessions/s-1/messages?head=msg_1')).status).to.equal(200)
    expect((await get('/sessions/s-1/messages?head=')).status).to.equal(400)
    const asHead = ['s-1', { limit: 50, head: 'msg_1' }]
    expect(asked).to.deep.equal([{ limit: 7, cursor: 'xyz' }, 's-1', { limit: 50 }, ...asHead])

    const patch = (body: unknown) => {
      const headers = { 'content-type': 'application/json' }
      return fetch(`${url}/sessions/s-1`, { method: 'PATCH', headers, body: JSON.stringify(body) })
    }
    const renamed = await described('PATCH', '/sessions/{id}', await patch({ title: 'Boats' }))
    expect(renamed).to.deep.equal({ ...SESSION, title: 'Boats' })
    for (const body of [{}, { title: '' }, { title: ' \n' }, { title: 'x'.repeat(201) }, { title: 7 }]) {
      const refused = await patch(body)
      expect(refused.status).to.equal(400)
      expect(await refusalOf(refused)).to.include({ param: '/title' })
    }
  })

  it('D23.4: POST /sessions passes a history on, and refuses a wrong one before anything is created', async () => {
    const asked: unknown[] = []
    const { post } = await start({
      methods: {
        async createSession(_tenant, ...args) {
          asked.push(args)
          return SESSION
        },
      },
    })
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', blocks: [{ type: 'text', text: 'hello' }] },
    ]
    expect((await post('/sessions', { session_id: 's', messages })).status).to.equal(201)
    expect((await post('/sessions', { messages: [] })).status).to.equal(201)
    expect(asked).to.deep.equal([['s', messages], [undefined]])
    for (const [wrong, param] of [
      [[{ role: 'system', content: 'x' }], '/messages/0/role'],
      [[{ role: 'assistant', content: 'x' }], '/messages/0/role'],
      [[{ role: 'user', content: '' }], '/messages/0/content'],
      [[{ role: 'user', blocks: [] }], '/messages/0/blocks'],
      [[{ role: 'user', blocks: [{ type: 'image' }] }], '/messages/0/blocks/0/type'],
      [Array.from({ length: 1001 }, () => ({ role: 'user' })), '/messages'],
    ] as const) {
      const refused = await post('/sessions', { messages: wrong })
      expect(refused.status).to.equal(400)
      expect(await refusalOf(refused)).to.include({ param })
    }
    expect(asked).to.have.length(2)
  })

  it('api.md Endpoints: GET /sessions/{id} describes the session, DELETE deletes it', async () => {
    const deleted: string[] = []
    const { get, url } = await start({
      methods: {
        getSession: async (_tenant, id) => ({ ...SESSION, session_id: id }),
        async deleteSession(_tenant, id) {
          deleted.push(id)
        },
      },
    })
    const id = 'A.z_9:-'
    const read = await get(`/sessions/${id}`)
    expect(await described('GET', '/sessions/{id}', read)).to.deep.equal({ ...SESSION, session_id: id })
    const removed = await fetch(`${url}/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' })
    expect(await described('DELETE', '/sessions/{id}', removed)).to.deep.equal({ status: 'deleted' })
    expect(deleted).to.deep.equal([id])
  })

  it('api.md RunRequest: the fields of a run reach the broker, and an empty customer_id counts as none (D2.11)', async () => {
    const asked: RunRequest[] = []
    const { post } = await start({
      methods: {
        async startRun(_tenant, request) {
          asked.push(request)
          return { runId: RUN_ID, frames: framesOf(DONE) }
        },
      },
    })
    await (await post('/agent/run', { prompt: 'hi', customer_id: '', tools: 1 })).text()
    await (await post('/agent/run', { prompt: 'hi', customer_id: 'c', max_turns: 3 })).text()
    expect(asked).to.deep.equal([{ prompt: 'hi' }, { prompt: 'hi', customer_id: 'c', max_turns: 3 }])
  })

  it('api.md Endpoints: a message reaches its session, and its stream has the headers of D4.1', async () => {
    const asked: unknown[] = []
    const { post } = await start({
      methods: {
        async sendMessage(_tenant, id, message) {
          asked.push([id, message])
          return { runId: RUN_ID, frames: framesOf(DONE) }
        },
      },
    })
    const response = await post('/sessions/s-1/messages', { prompt: 'hi', model: 'm', max_turns: 3 })
    expect(response.headers.get('x-run-id')).to.equal(RUN_ID)
    expect(await response.text()).to.include('event: done')
    expect(asked).to.deep.equal([['s-1', { prompt: 'hi', model: 'm' }]])
  })

  it('api.md Endpoints: a permission reply reaches the session, or the one-shot run (D4.1), and is ok', async () => {
    const asked: [string, string, SignedReply][] = []
    const { post } = await start({
      methods: {
        async replyPermission(_tenant, scope, id, reply) {
          asked.push([scope, id, reply])
        },
      },
    })
    for (const [scope, reply] of [
      ['s-1', { allow: true }],
      [RUN_ID, { allow: false, reason: 'no' }],
    ] as const) {
      const response = await post(`/sessions/${scope}/permissions/${PERMISSION_ID}`, reply)
      const body = await described('POST', '/sessions/{id}/permissions/{request_id}', response)
      expect(body).to.deep.equal({ status: 'ok' })
    }
    expect(asked).to.deep.equal([
      ['s-1', PERMISSION_ID, { allow: true, by: 'anonymous' }],
      [RUN_ID, PERMISSION_ID, { allow: false, reason: 'no', by: 'anonymous' }],
    ])
  })

  it('D4.12: a reply whose allow is not a boolean is 400 and decides nothing', async () => {
    const { post } = await start()
    for (const allow of ['true', 1, null, undefined]) {
      const response = await post(`/sessions/s/permissions/${PERMISSION_ID}`, { allow })
      expect(response.status).to.equal(400)
      expect((await refusalOf(response)).param).to.equal('/allow')
    }
  })

  const refusals: [AppError, number, string][] = [
    [notFound('no session s-1'), 404, 'not_found_error'],
    [conflict('session s-1 exists already'), 409, 'conflict_error'],
    [tooMany('full', 7), 429, 'rate_limit_error'],
    [new AppError('unavailable', 'away', { retryAfterSecs: 0.2 }), 503, 'unavailable_error'],
  ]
  for (const [error, status, type] of refusals) {
    it(`api.md Errors: a refusal of the broker of kind ${error.kind} is ${status} ${type} before a stream opens`, async () => {
      const refuse = () => Promise.reject(error)
      const methods = { createSession: refuse, startRun: refuse, sendMessage: refuse, followRun: refuse }
      const { post, get } = await start({ methods })
      const responses = [
        await post('/sessions'),
        await post('/agent/run', { prompt: 'hi' }),
        await post('/sessions/s/messages', { prompt: 'hi' }),
        await get(`/runs/${RUN_ID}/events`),
      ]
      for (const response of responses) {
        expect(response.status).to.equal(status)
        expect(await refusalOf(response)).to.deep.equal({ type, message: error.message })
      }
      const after = responses[0]?.headers.get('retry-after')
      expect(after).to.equal(error.retryAfterSecs === undefined ? null : String(Math.ceil(error.retryAfterSecs)))
    })
  }
})
